"""How near each implementation comes to its tolerance, and how far planted faults go beyond."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tiled_attention.plots.rows import why_nothing
from tiled_attention.plots.style import (
    INK,
    PLAIN,
    Look,
    legend_below,
    log_ticks,
    new_figure,
    present,
    say_instead,
    styled,
)

GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, are spread evenly
BEYOND = 2.5  # what has no place on a logarithmic axis is drawn by this factor beyond the rest
DTYPES = (("X", "full"), ("X", "none"), ("o", "none"))  # marker and filling of each, in turn


@styled
def errors(cases: pd.DataFrame, mutants: pd.DataFrame, look: Look) -> Figure:
    """Draw error as a share of the tolerance, of every judged case and of planted faults.

    cases is correctness's table, mutants gate_sensitivity's: of those, the largest share of each
    fault and dtype is drawn.
    """
    judged, planted = _with_share(cases), _with_share(mutants)
    names = present(look, judged)
    faults = list(dict.fromkeys(planted["mutant"])) if len(planted) else []
    heights = [max(1, len(names)), max(1, len(faults))]
    figure, (upper, lower) = new_figure(
        2, height=2.4 + 0.4 * sum(heights), gridspec_kw={"height_ratios": heights}
    )
    upper.set_title("Error of every judged case, and the median")
    lower.set_title("Largest error of each planted fault")
    if names:
        low, high = _ends(judged["share"])
        for index, name in enumerate(names):
            own = np.sort(judged.loc[judged["implementation"] == name, "share"])
            spread = index + 0.6 * (GOLDEN * np.arange(len(own)) % 1 - 0.5)
            style = {**look[name], "markersize": 4.5, "markeredgewidth": 0, "alpha": 0.55}
            upper.plot(own.clip(low, high), spread, linestyle="none", **style)
            upper.plot(np.median(own).clip(low, high), index, "|", color="black", markersize=20,
                       markeredgewidth=2)  # fmt: skip
        _share_axis(upper, judged["share"], names)
    else:
        say_instead(upper, f"No case was judged: {why_nothing(cases)}.")
    if faults:
        largest = planted.groupby(["mutant", "dtype"], sort=False)["share"].max()
        low, high = _ends(largest)
        for (dtype, own), (marker, filling) in zip(
            largest.groupby("dtype", sort=False), DTYPES, strict=False
        ):
            rows = [faults.index(fault) for fault in own.index.get_level_values("mutant")]
            lower.plot(own.clip(low, high), rows, marker, fillstyle=filling, color=INK,
                       markersize=9, label=dtype)  # fmt: skip
        _share_axis(lower, largest, faults)
        legend_below(figure, *lower.get_legend_handles_labels())
    else:
        say_instead(lower, f"No planted fault was judged: {why_nothing(mutants)}.")
    return figure


def _with_share(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the judged rows with `share`: infinite where a failed case has no number."""
    if rows.empty:
        return rows
    error, tolerance = rows["max_abs_error"], rows["tolerance"]
    share = (error / tolerance).mask(error == 0, 0.0)
    failed = rows["passed"].eq(False)
    return rows.assign(share=share.mask(failed & share.isna(), np.inf)).dropna(subset=["share"])


def _ends(shares: pd.Series) -> tuple[float, float]:
    """Return where a share of 0, and one that is no number, are drawn."""
    regular = shares[(shares > 0) & np.isfinite(shares)]
    return min([*regular, 1.0]) / BEYOND, max([*regular, 1.0]) * BEYOND


def _share_axis(axes: Axes, shares: pd.Series, names: Sequence[str]) -> None:
    """Name the rows, mark 1, and give a place to what is off the logarithmic scale."""
    axes.axvline(1, color="black", linewidth=1.2)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(False, axis="y")
    axes.set_xscale("log")
    low, high = _ends(shares)
    ticks = {tick: PLAIN.format(x=tick) for tick in log_ticks(low * 1.5, high / 1.5, 6)}
    if (shares == 0).any():
        ticks[low] = "0"
    if np.isinf(shares).any():
        ticks[high] = "no number"
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    off_scale = sorted({low, high} & set(ticks))
    for end in off_scale:
        axes.axvline(end, color=INK, linewidth=0.9, linestyle=":")
    where = f"; dotted: {' or '.join(ticks[end] for end in off_scale)}, off the scale"
    axes.set_xlabel("error / tolerance (beyond 1: rejected" + (where if off_scale else "") + ")")
