"""The modelled ratio to the baseline, the points it was fitted to, and those that test it."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tiled_attention.plots.style import (
    INK,
    legend_below,
    length_axis,
    looks,
    new_figure,
    ratio_axis,
    say_instead,
)

PANEL = 3.0  # inches


def crossover(tables: Mapping[str, pd.DataFrame], results: pd.DataFrame) -> Figure:
    """One panel a candidate: band of the fit, fitted points filled, unseen points open."""
    rows = tables["result"]
    names = sorted(results["implementation"].unique())
    columns = max(len(rows), 1)
    figure, panels = new_figure(columns, width=PANEL * columns + 0.8, sharey=True, squeeze=False)
    if rows.empty:
        say_instead(panels[0, 0], "No crossover: there is nothing but the baseline.")
        return figure
    curves = tables.get("curves", pd.DataFrame(columns=["implementation"]))
    look = looks(names)
    timed = results[(results["series"] == "lengths") & (results["status"] == "ok")]
    for axes, row in zip(panels[0], rows.to_dict("records"), strict=True):
        name = row["implementation"]
        axes.set_title(f"{name}\n{row['kind']}")
        curve = curves[curves["implementation"] == name]
        if curve.empty:
            axes.text(0.5, 0.5, row["verdict"], ha="center", va="center", wrap=True,
                      transform=axes.transAxes)  # fmt: skip
            axes.set_xticks([])
            continue
        color = look.get(name, {"color": INK})["color"]
        axes.fill_between(curve["length"], curve["predicted_low"], curve["predicted_high"],
                          color=color, alpha=0.25, linewidth=0)  # fmt: skip
        axes.plot(curve["length"], curve["predicted_ratio"], color=color, label="model, with band")
        fitted_lengths = {int(length) for length in str(row["fitted_on"]).split()}
        _points(axes, timed[timed["implementation"] == name], fitted_lengths, color)
        _predicted(axes, row)
        axes.axhline(1, color="black", linewidth=1)
        length_axis(axes, timed["length"])
        axes.tick_params(axis="x", rotation=55)
        ratio_axis(axes)
    panels[0, 0].set_ylabel("time / baseline's time")
    drawn = next((axes for axes in panels[0] if axes.get_legend_handles_labels()[0]), None)
    if drawn is not None:
        legend_below(figure, drawn, columns=4)
    return figure


def _points(axes: Axes, rows: pd.DataFrame, fitted: set[int], color: object) -> None:
    for seen, style, label in ((True, "full", "seen by the fit"), (False, "none", "not seen")):
        part = rows[rows["length"].isin(fitted) == seen].dropna(subset=["ratio_to_naive"])
        errors = [
            part["ratio_to_naive"] - part["ratio_ci_low"],
            part["ratio_ci_high"] - part["ratio_to_naive"],
        ]
        axes.errorbar(part["length"], part["ratio_to_naive"], yerr=np.clip(errors, 0, None),
                      linestyle="none", marker="o", fillstyle=style, color=color, capsize=3,
                      label=label)  # fmt: skip


def _predicted(axes: Axes, row: Mapping[str, float]) -> None:
    """Mark the predicted crossover's interval where it has two finite ends."""
    low, high = row["ci_low"], row["ci_high"]
    if np.isfinite([low, high]).all() and 0 < low < high:
        axes.axvspan(low, high, color=INK, alpha=0.18, linewidth=0, label="predicted crossover")
