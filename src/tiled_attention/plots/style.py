"""One look for every figure, and the same bytes at every rendering."""

import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.style import context
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

WIDTH, HEIGHT = 7.2, 4.8  # inches; 12 points are then 9 pixels on a page 400 pixels wide
LINE, LEGEND = 64, 78  # characters of a note, and of a legend's row, that fit
LINE_HEIGHT = 0.2  # inches
HANDLE = 8  # characters that a legend's line, marker and gaps take
PLAIN = "{x:,.10g}"
LENGTH_LABEL = "sequence length S (tokens)"
INK, GREY = "#333333", "#777777"
COUNTED = ("naive", "tiled", "query_tiled")  # first, so that their look is always the same
MARKERS = "osv^PX<>p"  # the open diamond is the article's own; coprime with the ten colours
DODGE = 0.011  # of the axis between the intervals of two implementations at one length
SETTINGS = {
    **sns.axes_style("whitegrid"),
    "font.sans-serif": ["DejaVu Sans"],  # matplotlib's own: installed fonts change nothing
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.fontsize": 11,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 6.5,
    "errorbar.capsize": 3,
    "text.parse_math": False,  # a reason may hold a dollar sign
    # Outlines in place of letters: a page that may fetch nothing shows the same everywhere.
    "svg.fonttype": "path",
    "svg.hashsalt": "tiled-attention",  # ids that do not change from run to run
}
# Decorates whatever draws. It starts from matplotlib's defaults: no user's settings get in.
styled = context(["default", SETTINGS])

Look = Mapping[str, Mapping[str, Any]]


def new_figure(
    rows: int = 1, columns: int = 1, height: float = HEIGHT, **shared: Any
) -> tuple[Figure, Any]:
    """Return a figure and its axes, without touching any global state."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **shared)


@styled
def save(figure: Figure, kind: str) -> bytes:
    """Return the figure's file, the same bytes each time; kind is svg or png."""
    buffer = io.BytesIO()
    metadata = {"svg": {"Date": None, "Creator": "tiled-attention"}, "png": {"Software": None}}
    figure.savefig(buffer, format=kind, dpi=200, metadata=metadata[kind])
    return buffer.getvalue()


def looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return each implementation's colour and marker, the counted ones first."""
    ordered = [*COUNTED, *sorted(set(names) - set(COUNTED))]
    palette = sns.color_palette("colorblind")
    return {
        name: {"color": palette[index % len(palette)], "marker": MARKERS[index % len(MARKERS)]}
        for index, name in enumerate(ordered)
    }


def present(look: Look, rows: pd.DataFrame) -> list[str]:
    """Return the implementations among the rows, in the order of their looks."""
    found = set(rows["implementation"]) if len(rows) else set()
    return [name for name in look if name in found]


def length_axis(axes: Axes, lengths: Iterable[float], room: int = 9) -> None:
    """Give the axis a base-2 scale with the lengths themselves as its ticks.

    All have a tick; where they lie closer than `room` labels allow, the shorter has no label.
    """
    axes.set_xscale("log", base=2)
    left, right = axes.get_xlim()
    ticks = sorted({int(length) for length in lengths}, reverse=True)
    labels: list[str] = []
    labelled = np.inf
    for tick in ticks:
        clear = np.log2(labelled / tick) >= np.log2(right / left) / room
        labels.append(f"{tick:,}" if clear else "")
        labelled = tick if clear else labelled
    axes.set_xticks(ticks, labels)
    axes.minorticks_off()
    axes.set_xlabel(LENGTH_LABEL)


def log_axis(axes: Axes) -> None:
    """Give the vertical axis, its data drawn, a base-10 scale with plain numbers."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator(log_ticks(*axes.get_ylim())))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(PLAIN)


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Return round numbers between two positive ends, about `most` of them."""
    decades = np.log10(high / low)
    ticks: Iterable[float]
    if decades < 1:
        ticks = MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(low, high)
    else:
        steps = next(
            (steps for steps in ((1, 2, 5), (1, 3)) if len(steps) * decades <= most), (1,)
        )
        stride = max(1, int(np.ceil(decades / most)))
        powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        ticks = [step * 10.0**power for power in powers if power % stride == 0 for step in steps]
    return [float(tick) for tick in ticks if tick > 0 and low <= tick <= high]


def say_instead(axes: Axes, sentence: str, width: int = 54) -> None:
    """Put a sentence where there is nothing to draw."""
    axes.set_axis_off()
    axes.text(
        0.5, 0.5, wrapped(sentence, width), ha="center", va="center", transform=axes.transAxes
    )  # fmt: skip


def note(figure: Figure, axes: Axes, sentences: Iterable[str]) -> None:
    """Put sentences under the horizontal axis's label, on a figure made higher for them."""
    lines = "\n".join(wrapped(sentence, LINE) for sentence in sentences)
    if lines:
        axes.set_xlabel(f"{axes.get_xlabel()}\n{lines}")
        figure.set_figheight(figure.get_figheight() + LINE_HEIGHT * (1 + lines.count("\n")))


def wrapped(sentence: str, width: int) -> str:
    """Return the sentence in lines, a very long one cut short."""
    return textwrap.fill(textwrap.shorten(sentence, 4 * width, placeholder=" ..."), width)


def runs_without_gap(lengths: Sequence[float], present: Sequence[float]) -> list[list[float]]:
    """Split `present` where one of `lengths` between two neighbours is missing.

    A line may join only neighbours, so that none crosses a gap.
    """
    order = {length: index for index, length in enumerate(sorted(set(lengths)))}
    runs: list[list[float]] = []
    for length in sorted(set(present)):
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
    shift: float = 1.0,
    **look: Any,
) -> None:
    """Draw value, low and high (the three `columns`) by length; joined only where no gap is.

    `shift` is a factor on the lengths.
    """
    rows = rows.dropna(subset=[columns[0]]).sort_values("length")
    for run in runs_without_gap(lengths, list(rows["length"])):
        part = rows[rows["length"].isin(run)]
        axes.errorbar(part["length"] * shift, part[columns[0]], yerr=reach(part, *columns),
                      label=label, **look)  # fmt: skip
        label = "_nolegend_"


def reach(rows: pd.DataFrame, value: str, low: str, high: str) -> list[pd.Series]:
    """Return how far each interval reaches below and above its value; 0 where there is none."""
    below, above = rows[value] - rows[low], rows[high] - rows[value]
    return [side.clip(lower=0).fillna(0) for side in (below, above)]


def dodge(lengths: Iterable[float], count: int) -> list[float]:
    """Return a factor on the length for each of `count` series, so that none hides the next."""
    octaves = np.ptp(np.log2(list(lengths))) or 1.0
    return [2 ** (DODGE * octaves * (index - (count - 1) / 2)) for index in range(count)]


def legend_below(figure: Figure, handles: Sequence[Artist], labels: Sequence[str]) -> None:
    """Put the legend under the axes, where it covers no data, in as few rows as fit."""
    if not handles:
        return
    for rows in range(1, len(labels) + 1):
        columns = -(-len(labels) // rows)
        widths = [max(map(len, part)) + HANDLE for part in np.array_split(labels, columns)]
        if sum(widths) <= LEGEND:
            break
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)
