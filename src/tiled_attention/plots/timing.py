"""Time and ratio by length, and the cost of one more block."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tiled_attention.plots.rows import (
    RATIO,
    TIME,
    gaps,
    of_series,
    reason,
    why_nothing,
    with_value,
)
from tiled_attention.plots.style import (
    GREY,
    INK,
    Look,
    dodge,
    legend_below,
    length_axis,
    line_with_intervals,
    log_axis,
    new_figure,
    note,
    present,
    reach,
    say_instead,
    styled,
)

DASHES = ("--", ":", "-.")


@styled
def time_by_length(results: pd.DataFrame, look: Look) -> Figure:
    """Draw each implementation's median time with its interval; results is cpu_timing's table."""
    figure, axes = new_figure()
    axes.set_title("Time of one call by sequence length")
    asked = of_series(results, "lengths")
    rows = with_value(asked, TIME[0])
    if rows.empty:
        say_instead(axes, f"No timing: {why_nothing(asked)}.")
        return figure
    names = present(look, rows)
    for name, shift in zip(names, dodge(asked["length"], len(names)), strict=True):
        own = rows[rows["implementation"] == name]
        line_with_intervals(axes, own, list(asked["length"]), TIME, name, shift, **look[name])
    length_axis(axes, asked["length"])
    log_axis(axes)
    axes.set_ylabel("median and interval (ms)")
    note(figure, axes, gaps(asked, rows, "time"))
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


@styled
def ratio_by_length(
    results: pd.DataFrame,
    published: pd.DataFrame,
    beside: Sequence[tuple[str, pd.DataFrame]],
    look: Look,
) -> Figure:
    """Draw the paired ratio to naive; the article's, and `tiled` of other platforms, beside it.

    published has columns length and ratio; beside holds (label, cpu_timing table) pairs.
    """
    figure, axes = new_figure()
    axes.set_title("Ratio to naive attention by sequence length")
    asked = of_series(results, "lengths")
    rows = with_value(asked, RATIO[0])
    names = [name for name in present(look, rows) if name != "naive"]
    if not names:
        say_instead(axes, f"No timing: {why_nothing(asked, 'there is no other than naive')}.")
        return figure
    axes.axhline(1, color="black", linewidth=1.2, label="naive")
    for name, shift in zip(names, dodge(asked["length"], len(names)), strict=True):
        own = rows[rows["implementation"] == name]
        line_with_intervals(axes, own, list(asked["length"]), RATIO, name, shift, **look[name])
    shown = _others(axes, beside, set(asked["length"]))
    if len(published):
        axes.plot(published["length"], published["ratio"], "D", color=GREY, fillstyle="none",
                  markersize=9, markeredgewidth=1.5, label="tiled, article")  # fmt: skip
        shown |= set(published["length"])
    length_axis(axes, shown)
    log_axis(axes)
    axes.set_ylabel("time / naive's in the same round")
    note(figure, axes, gaps(asked, rows, "ratio", "naive has no time there"))
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


@styled
def block_cost(results: pd.DataFrame, fitted: pd.DataFrame, look: Look) -> Figure:
    """Draw time by number of blocks at one length, with the fitted line and its slope's interval.

    results is cpu_timing's table, fitted crossover's "block_cost".
    """
    figure, axes = new_figure()
    axes.set_title("Time of one call by number of blocks")
    asked = of_series(results, "block sweep")
    sweep = with_value(asked, TIME[0])
    if sweep.empty:
        say_instead(axes, f"No timing of a block sweep: {why_nothing(asked)}.")
        return figure
    name, length = sweep["implementation"].iloc[0], sweep["length"].iloc[0]
    axes.set_xlabel(f"key blocks of {name} at S = {length:,} (labels: block size)")
    sweep = sweep.assign(blocks=np.ceil(sweep["length"] / sweep["block_size"]))
    sweep = sweep.sort_values("blocks")
    axes.errorbar(sweep["blocks"], sweep[TIME[0]], yerr=reach(sweep, *TIME), linestyle="none",
                  label=f"{name}, median and interval", **look[name])  # fmt: skip
    axes.margins(y=0.2)
    shown = axes.get_ylim()
    _label_blocks(axes, sweep)
    status = fitted["status"].iloc[0] if len(fitted) else "not enough data"
    if status == "ok":
        _fitted_line(axes, fitted.iloc[0], sweep["blocks"])
    else:
        note(figure, axes, [f"No line: {reason(status)}"])
    axes.set_ylim(shown)  # by the measurements, however wide the fan is
    axes.set_ylabel("median and interval (ms)")
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


def _label_blocks(axes: Axes, sweep: pd.DataFrame) -> None:
    """Write block sizes over and under the intervals in turn: neighbours may be close."""
    ends = sweep[list(TIME)].agg(["min", "max"], axis="columns")
    rows = zip(sweep["blocks"], sweep["block_size"], ends["min"], ends["max"], strict=True)
    for index, (blocks, size, low, high) in enumerate(rows):
        over = index % 2 == 0
        axes.annotate(
            f"{size:.0f}", (blocks, high if over else low), (0, 6 if over else -6),
            textcoords="offset points", ha="center", va="bottom" if over else "top", fontsize=10.5,
        )  # fmt: skip


def _fitted_line(axes: Axes, row: pd.Series, blocks: pd.Series) -> None:
    """Draw the line, and its slope's interval as a fan about the middle of the line."""
    ends, middle = np.array([blocks.min(), blocks.max()]), blocks.mean()
    at_middle = row["intercept_ms"] + row["ms_per_block"] * middle
    slope, low, high = (1e3 * row[key] for key in ("ms_per_block", "ci_low", "ci_high"))
    knots = np.array([ends[0], middle, ends[1]])
    fan = [at_middle + row[key] * (knots - middle) for key in ("ci_low", "ci_high")]
    axes.fill_between(knots, *fan, color=INK, alpha=0.15, linewidth=0)
    axes.plot(ends, at_middle + row["ms_per_block"] * (ends - middle), color=INK, linestyle="--",
              label=f"{slope:,.0f} [{low:,.0f}, {high:,.0f}] µs a block, "
                    f"R² = {row['r_squared']:.2f}")  # fmt: skip


def _others(axes: Axes, beside: Sequence[tuple[str, pd.DataFrame]], lengths: set[int]) -> set[int]:
    """Draw `tiled` of other platforms; return their timed lengths together with `lengths`."""
    shown = set(lengths)
    for (label, results), dashes in zip(beside, cycle(DASHES), strict=False):
        asked = of_series(results, "lengths")
        own = with_value(asked[asked["implementation"] == "tiled"], RATIO[0])
        if len(own):
            line_with_intervals(
                axes, own, [*lengths, *asked["length"]], RATIO, f"tiled on {label}", color=GREY,
                marker=".", linewidth=1, linestyle=dashes, elinewidth=0.8,
            )  # fmt: skip
            shown |= set(own["length"])
    return shown
