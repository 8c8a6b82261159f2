"""The modelled ratio to the baseline, the points it was fitted to, and those that test it."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from tiled_attention.plots.rows import RATIO, of_series, with_value
from tiled_attention.plots.style import (
    INK,
    LENGTH_LABEL,
    Look,
    legend_below,
    length_axis,
    log_axis,
    new_figure,
    reach,
    say_instead,
    styled,
)

COLUMNS = 2
PANEL_WIDTH = 28  # characters


@styled
def crossover(tables: Mapping[str, pd.DataFrame], results: pd.DataFrame, look: Look) -> Figure:
    """Draw one panel a candidate: band of the fit, fitted points filled, unseen points open.

    tables are crossover's, of which any but "block_cost" may be missing; results is cpu_timing's.
    """
    rows = tables.get("result", pd.DataFrame())
    lines, columns = max(1, -(-len(rows) // COLUMNS)), min(COLUMNS, max(1, len(rows)))
    figure, panels = new_figure(
        lines, columns, height=1.3 + 2.4 * lines, sharey=True, squeeze=False
    )
    if rows.empty:
        panels[0, 0].set_title("Crossover")
        say_instead(panels[0, 0], "No crossover: there is nothing but the baseline.")
        return figure
    curves = tables.get("curves", pd.DataFrame({"implementation": [], "predicted_ratio": []}))
    curves = curves.dropna(subset=["predicted_ratio"])
    timed = with_value(of_series(results, "lengths"), RATIO[0])
    drawn = rows["implementation"].isin(curves["implementation"])
    rows = pd.concat([rows[drawn], rows[~drawn]])  # so that a drawn panel's left one has numbers
    lowest: dict[int, Axes] = {}  # drawn panel of each column
    for index, row in enumerate(rows.to_dict("records")):
        axes = panels.flat[index]
        name = row["implementation"]
        curve = curves[curves["implementation"] == name]
        if curve.empty:
            say_instead(axes, row["verdict"], PANEL_WIDTH)
        else:
            _panel(axes, row, curve, timed[timed["implementation"] == name], look[name])
            lowest[index % COLUMNS] = axes
        axes.set_title(f"{name}\n{row['kind']}")
    for axes in panels.flat[len(rows) :]:
        axes.set_axis_off()
    for axes in lowest.values():
        axes.set_xlabel(LENGTH_LABEL)
    if lowest:
        log_axis(lowest[0])
        figure.supylabel(f"time / time of {rows['baseline'].iloc[0]}", fontsize="medium")
        legend_below(figure, *_legend(any(_interval(row) for row in rows.to_dict("records"))))
    return figure


def _panel(
    axes: Axes,
    row: Mapping[str, Any],
    curve: pd.DataFrame,
    timed: pd.DataFrame,
    look: Mapping[str, Any],
) -> None:
    """Draw one candidate."""
    axes.axhline(1, color="black", linewidth=1.2)
    axes.fill_between(curve["length"], curve["predicted_low"], curve["predicted_high"],
                      color=look["color"], alpha=0.25, linewidth=0)  # fmt: skip
    axes.plot(curve["length"], curve["predicted_ratio"], color=look["color"])
    seen = timed["length"].isin([int(length) for length in row["fitted_on"].split()])
    for part, style in ((timed[seen], "full"), (timed[~seen], "none")):
        axes.errorbar(part["length"], part[RATIO[0]], yerr=reach(part, *RATIO), linestyle="none",
                      fillstyle=style, **look)  # fmt: skip
    length_axis(axes, timed["length"], room=4)
    axes.set_xlabel("")
    left, right = axes.get_xlim()
    interval = _interval(row)
    if interval:  # what lies outside the lengths shown is cut off, not squeezed in
        axes.axvspan(*np.clip(interval, left, right), color=INK, alpha=0.18, linewidth=0, zorder=0)
        if left < row["predicted_length"] < right:
            axes.axvline(row["predicted_length"], color=INK, linestyle=":")
        axes.set_xlim(left, right)


def _interval(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return the predicted crossover's interval; its upper end may be infinite: it never comes."""
    low, high = row["ci_low"], row["ci_high"]
    return (low, high) if np.isfinite(row["predicted_length"]) and low < high else None


def _legend(with_interval: bool) -> tuple[list[Artist], list[str]]:
    """Return what stands for the same thing in all panels, in no implementation's colour."""
    entries: dict[str, Artist] = {
        "model": Line2D([], [], color=INK),
        "its band": Patch(color=INK, alpha=0.25, linewidth=0),
        "fitted": _point("full"),
        "not seen by the fit": _point("none"),
    }
    if with_interval:
        entries["predicted crossover"] = Line2D([], [], color=INK, alpha=0.35, linewidth=8)
    return list(entries.values()), list(entries)


def _point(filling: Literal["full", "none"]) -> Line2D:
    return Line2D([], [], color=INK, marker="o", linestyle="none", fillstyle=filling)
