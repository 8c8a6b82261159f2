"""Rates on a GPU by length, and the fused kernel on every platform that has one."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from tiled_attention.plots.style import (
    HEIGHT,
    Look,
    dodge,
    legend_below,
    length_axis,
    line_with_intervals,
    log_axis,
    new_figure,
    note,
    present,
    say_instead,
    styled,
)

RATE = ("tflops", "tflops_low", "tflops_high")
RATE_LABEL = "TFLOP/s, median and interval"
FUSED = "triton_flash"
NOTHING = "No GPU was timed: none was there, and none is recorded for this version."


@styled
def gpu_rates(run: tuple[str, pd.DataFrame] | None, look: Look) -> Figure:
    """Draw each implementation's rate by length, one panel a head_dim, causal or not.

    run is (platform, gpu_timing's table with the rate's interval), or None.
    """
    rows = _rates(run[1]) if run else pd.DataFrame()
    if run is None or rows.empty:
        figure, axes = new_figure()
        axes.set_title("Rate on a GPU by sequence length")
        say_instead(axes, NOTHING)
        return figure
    dtype = rows["dtype"].value_counts().idxmax()
    rows = rows[rows["dtype"] == dtype]
    head_dims = sorted(rows["head_dim"].unique())
    causal = sorted(rows["causal"].unique())
    figure, grid = new_figure(
        len(head_dims), len(causal), HEIGHT * (0.2 + 0.6 * len(head_dims)),
        squeeze=False, sharey=True,
    )  # fmt: skip
    figure.suptitle(f"Rate on {run[0]} by sequence length, {dtype}", x=0.02, ha="left",
                    fontweight="bold", fontsize=13)  # fmt: skip
    asked = list(run[1].loc[run[1]["dtype"] == dtype, "length"])
    names = present(look, rows)
    handles: dict[str, object] = {}
    for line, head_dim in enumerate(head_dims):
        for column, masked in enumerate(causal):
            axes = grid[line][column]
            panel = rows[(rows["head_dim"] == head_dim) & (rows["causal"] == masked)]
            for name, shift in zip(names, dodge(asked, len(names)), strict=True):
                own = panel[panel["implementation"] == name]
                line_with_intervals(axes, own, asked, RATE, name, shift, **look[name])
            axes.set_title(f"head_dim {head_dim}, {'causal' if masked else 'not causal'}")
            length_axis(axes, asked, room=5)
            log_axis(axes)
            if column == 0:
                axes.set_ylabel(RATE_LABEL)
            found, labels = axes.get_legend_handles_labels()
            handles |= dict(zip(labels, found, strict=True))
    legend_below(figure, list(handles.values()), list(handles))  # type: ignore[arg-type]
    return figure


@styled
def gpu_platforms(runs: Sequence[tuple[str, pd.DataFrame]], look: Look) -> Figure:
    """Draw the fused kernel's rate by length on each platform, at its largest head_dim.

    runs holds (platform, gpu_timing's table with the rate's interval) pairs.
    """
    figure, axes = new_figure()
    axes.set_title("The fused kernel on each platform")
    parts = []
    for platform, result in runs:
        rows = _rates(result)
        parts.append(rows[rows["implementation"] == FUSED].assign(platform=platform))
    rows = pd.concat(parts) if parts else pd.DataFrame()
    if rows.empty:
        say_instead(axes, NOTHING)
        return figure
    rows = rows[~rows["causal"].astype(bool)] if not rows["causal"].all() else rows
    rows = rows[rows["dtype"] == rows["dtype"].value_counts().idxmax()]
    rows = rows[rows["head_dim"] == rows["head_dim"].max()]
    platforms = list(dict.fromkeys(rows["platform"]))
    styles = list(look.values())
    lengths = [length for _, result in runs for length in result["length"]]
    for index, (platform, shift) in enumerate(
        zip(platforms, dodge(lengths, len(platforms)), strict=True)
    ):
        own = rows[rows["platform"] == platform]
        line_with_intervals(axes, own, lengths, RATE, platform, shift,
                            **styles[index % len(styles)])  # fmt: skip
    shape = rows.iloc[0]
    causal = "causal" if shape["causal"] else "not causal"
    length_axis(axes, lengths)
    log_axis(axes)
    axes.set_ylabel(RATE_LABEL)
    note(figure, axes, [f"{FUSED}, {shape['dtype']}, head_dim {shape['head_dim']}, {causal}"])
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


def _rates(result: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that were timed, numbers as numbers."""
    rows = result[result["status"] == "ok"]
    return rows.astype(dict.fromkeys(RATE, float))
