"""Time and ratio by length, and the cost of one more block."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tiled_attention.plots.style import (
    INK,
    legend_below,
    length_axis,
    line_with_intervals,
    looks,
    new_figure,
    ratio_axis,
    say_instead,
    size_axis,
)

NO_TIMING = "No timing: "


def time_by_length(results: pd.DataFrame) -> Figure:
    """Median time with its interval, both axes logarithmic."""
    figure, axes = new_figure()
    rows, lengths = _timed(results)
    if rows.empty:
        say_instead(axes, NO_TIMING + _reasons(results))
        return figure
    for name, look in looks(_names(results)).items():
        own = rows[rows["implementation"] == name]
        line_with_intervals(
            axes, own, lengths, ("median_ms", "ci_low_ms", "ci_high_ms"), name, **look
        )
    length_axis(axes, lengths)
    size_axis(axes)
    axes.set_ylabel("time of one call (ms)")
    axes.set_title("Time by sequence length: median and interval")
    legend_below(figure, axes)
    return figure


def ratio_by_length(
    results: pd.DataFrame, published: pd.DataFrame, beside: Sequence[tuple[str, pd.DataFrame]]
) -> Figure:
    """Paired ratio to naive; the article's ratios, and `tiled` on other platforms, beside it.

    published has columns length and ratio; beside holds (label, timing result) pairs.
    """
    figure, axes = new_figure()
    rows, lengths = _timed(results)
    rows = rows.dropna(subset=["ratio_to_naive"])
    if rows.empty:
        say_instead(axes, NO_TIMING + _reasons(results))
        return figure
    ratio = ("ratio_to_naive", "ratio_ci_low", "ratio_ci_high")
    for name, look in looks(_names(results)).items():
        if name != "naive":
            own = rows[rows["implementation"] == name]
            line_with_intervals(axes, own, lengths, ratio, name, **look)
    axes.plot(
        published["length"], published["ratio"], "D", color=INK, fillstyle="none", markersize=8,
        label="tiled, article",
    )  # fmt: skip
    shown = [*lengths, *published["length"]]
    for label, other in beside:
        others, other_lengths = _timed(other)
        own = others[others["implementation"] == "tiled"]
        line_with_intervals(
            axes, own, other_lengths, ratio, f"tiled on {label}",
            color=INK, marker=".", linestyle="--", alpha=0.7,
        )  # fmt: skip
        shown += other_lengths
    axes.axhline(1, color="black", linewidth=1)
    axes.annotate("naive", (1, 1), xycoords=("axes fraction", "data"), xytext=(-4, 4),
                  textcoords="offset points", ha="right")  # fmt: skip
    length_axis(axes, shown)
    ratio_axis(axes)
    axes.set_ylabel("time / naive's time in the same round")
    axes.set_title("Ratio to naive attention: below 1 is faster")
    legend_below(figure, axes)
    return figure


def block_cost(results: pd.DataFrame, fitted: pd.DataFrame) -> Figure:
    """Time by number of blocks at one length, with the fitted line."""
    figure, axes = new_figure()
    sweep = results[(results["series"] == "block sweep") & (results["status"] == "ok")]
    if sweep.empty or fitted.empty or fitted["status"].iloc[0] != "ok":
        reason = fitted["status"].iloc[0] if len(fitted) else "no block sweep was timed"
        say_instead(axes, f"No cost of a block: {reason}")
        return figure
    row = fitted.iloc[0]
    blocks = np.ceil(sweep["length"] / sweep["block_size"])
    errors = [sweep["median_ms"] - sweep["ci_low_ms"], sweep["ci_high_ms"] - sweep["median_ms"]]
    look = looks(_names(results)).get(str(row["implementation"]), {})
    axes.errorbar(blocks, sweep["median_ms"], yerr=errors, linestyle="none", capsize=3,
                  label=f"{row['implementation']}, median and interval", **look)  # fmt: skip
    ends = np.array([blocks.min(), blocks.max()])
    microseconds = [1e3 * row[key] for key in ("ms_per_block", "ci_low", "ci_high")]
    axes.plot(
        ends, row["intercept_ms"] + row["ms_per_block"] * ends, color=INK, linestyle="--",
        label="line: {:.0f} [{:.0f}, {:.0f}] us a block".format(*microseconds),
    )  # fmt: skip
    for count, time, size in zip(blocks, sweep["median_ms"], sweep["block_size"], strict=True):
        axes.annotate(f"{size:.0f}", (count, time), xytext=(0, 9), textcoords="offset points",
                      ha="center", fontsize=9, color=INK)  # fmt: skip
    axes.margins(y=0.18)
    axes.set_xlabel("number of key blocks (block size beside each point)")
    axes.set_ylabel("time of one call (ms)")
    axes.set_title(f"The cost of one more block, S = {int(row['length']):,}")
    legend_below(figure, axes, columns=2)
    return figure


def _timed(results: pd.DataFrame) -> tuple[pd.DataFrame, list[Any]]:
    """Return the rows with a time, and every length that was asked for."""
    lengths = results[results["series"] == "lengths"]
    timed = lengths[(lengths["status"] == "ok") & lengths["median_ms"].notna()]
    return timed, sorted(lengths["length"].unique())


def _names(results: pd.DataFrame) -> list[str]:
    return sorted(results["implementation"].unique())


def _reasons(results: pd.DataFrame) -> str:
    return "; ".join(results["status"].drop_duplicates()) or "nothing was asked for"
