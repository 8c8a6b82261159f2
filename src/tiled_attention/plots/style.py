"""One look for every figure, and the same bytes at every rendering."""

import io
from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

WIDTH, HEIGHT = 7.2, 4.6  # inches
MARKERS = "oDsv^PX<>p"
INK = "#444444"
SETTINGS = {
    **sns.axes_style("whitegrid"),
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    # Outlines of letters, not letters: the page shows the same without any font.
    "svg.fonttype": "path",
    "svg.hashsalt": "tiled-attention",  # ids that do not change from run to run
}
styled = mpl.rc_context(SETTINGS)  # a decorator for whatever draws


def new_figure(
    columns: int = 1, width: float = WIDTH, height: float = HEIGHT, **shared: Any
) -> tuple[Figure, Any]:
    """Return a figure and its axes, without touching any global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns, **shared)


@styled
def save(figure: Figure, kind: str) -> bytes:
    """Return the figure's file, the same bytes each time; kind is svg or png."""
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None, "Creator": "tiled-attention"}, "png": {"Software": None}}
    figure.savefig(buffer, format=kind, dpi=160, metadata=metadata[kind])
    return buffer.getvalue()


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return each implementation's colour and marker; the same for the same list of names."""
    palette = sns.color_palette("colorblind", max(len(names), 1))
    return {
        name: {"color": color, "marker": MARKERS[index % len(MARKERS)]}
        for index, (name, color) in enumerate(zip(names, palette, strict=False))
    }


def length_axis(axes: Axes, lengths: Iterable[float]) -> None:
    """Give the axis a base-2 scale with the lengths themselves as its ticks."""
    ticks = sorted({int(length) for length in lengths})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("sequence length S (tokens)")


def ratio_axis(axes: Axes) -> None:
    """Give the axis a base-2 scale with plain numbers, so that 1/2 and 2 are as far from 1."""
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")


def size_axis(axes: Axes) -> None:
    """Give the axis a base-10 scale with plain numbers at 1, 2, 5, 10, ..."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def say_instead(axes: Axes, sentence: str) -> None:
    """Put a sentence where there is nothing to draw."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, sentence, ha="center", va="center", wrap=True, transform=axes.transAxes)


def runs_without_gap(lengths: Sequence[float], present: Sequence[float]) -> list[list[float]]:
    """Split `present` where one of `lengths` between two neighbours is missing.

    A line may join only neighbours, so that none crosses a gap.
    """
    order = {length: index for index, length in enumerate(sorted(lengths))}
    runs: list[list[float]] = []
    for length in sorted(present):
        if runs and order[length] == order[runs[-1][-1]] + 1:
            runs[-1].append(length)
        else:
            runs.append([length])
    return runs


def line_with_intervals(
    axes: Axes,
    rows: pd.DataFrame,
    lengths: Sequence[float],
    columns: tuple[str, str, str],
    label: str,
    **look: Any,
) -> None:
    """Draw value, low and high (the three `columns`) by length; joined only where no gap is."""
    value, low, high = columns
    rows = rows.dropna(subset=[value]).sort_values("length").set_index("length")
    for run in runs_without_gap(lengths, list(rows.index)):
        part = rows.loc[run]
        errors = [
            (part[value] - part[low]).clip(lower=0).fillna(0),
            (part[high] - part[value]).clip(lower=0).fillna(0),
        ]
        axes.errorbar(
            part.index, part[value], yerr=errors, capsize=3, linewidth=1.6, markersize=6,
            label=label, **look,
        )  # fmt: skip
        label = "_nolegend_"


def legend_below(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """Put the legend under the axes, where it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=columns)
