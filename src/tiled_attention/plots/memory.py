"""Bytes by length: counted, and measured."""

import textwrap
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from tiled_attention.config import Table
from tiled_attention.plots.rows import gaps, why_nothing, with_value
from tiled_attention.plots.style import (
    INK,
    Look,
    legend_below,
    length_axis,
    log_axis,
    new_figure,
    note,
    present,
    runs_without_gap,
    say_instead,
    styled,
)
from tiled_attention.sizes import naive_bytes, query_tiled_bytes, tiled_bytes

SHORTEST, LONGEST = 1024, 262_144
LABEL_GAP = 0.062  # of the axes' height


@styled
def bytes_by_length(
    counted: pd.DataFrame, devices: pd.DataFrame, table: Table, look: Look
) -> Figure:
    """Draw the counted scores by length, and the memory of devices (decimal reading) as levels.

    counted and devices are byte_arithmetic's "result" and "devices", table what they are about.
    """
    figure, axes = new_figure(height=5.2)
    ends = [SHORTEST, LONGEST, *(counted["length"] if len(counted) else [])]
    lengths = [int(length) for length in np.geomspace(min(ends), max(ends), 80)]
    shape = (table.heads, table.batch, table.dtype)
    curves = {
        "naive": ("S x S", [naive_bytes(it, *shape) for it in lengths]),
        "tiled": ("S x block", [tiled_bytes(it, *shape, table.block_size) for it in lengths]),
        "query_tiled": (
            "block x block",
            [query_tiled_bytes(it, *shape, table.block_size) for it in lengths],
        ),
    }
    for name, (held, sizes) in curves.items():
        axes.plot(lengths, np.array(sizes) / 1e9, color=look[name]["color"])
        points = counted[["length", f"{name}_bytes"]].to_numpy() if len(counted) else []
        axes.plot(*np.reshape(points, (-1, 2)).T / [[1], [1e9]], linestyle="none",
                  label=f"{name}, {held}", **look[name])  # fmt: skip
    levels = _memory_sizes(devices)
    for level in levels:
        axes.axhline(level, color=INK, linewidth=0.9, linestyle=":")
    length_axis(axes, [4**power for power in range(5, 10)])
    log_axis(axes)
    _name_levels(axes, levels)
    axes.set_ylabel("scores held at once (GB = 1e9 bytes)")
    axes.set_title("Scores held at once, and memory of devices")
    held_for = f"batch {table.batch}, {table.heads} heads, {table.dtype}"
    note(figure, axes, [f"{held_for}, blocks of {table.block_size}"])
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


def _memory_sizes(devices: pd.DataFrame) -> dict[float, str]:
    """Return each size of memory in GB, read as decimal, and the devices that have it."""
    sizes: dict[float, str] = {}
    if devices.empty:
        return sizes
    decimal = devices[devices["reading"] == "decimal"].drop_duplicates("device")
    for memory, same in decimal.groupby("memory_bytes"):
        size = f"{memory / 1e9:g} GB"
        models = (name.removesuffix(size).partition(" ")[2] for name in same["device_name"])
        names = ", ".join(sorted(model.strip() for model in models))
        sizes[memory / 1e9] = textwrap.shorten(f"{size} {names}", 24, placeholder=" ...")
    return sizes


def _name_levels(axes: Axes, levels: Mapping[float, str]) -> None:
    """Write the levels' names beside the axes, apart where the levels are not."""
    if not levels:
        return
    on_screen = axes.transData.transform([(SHORTEST, level) for level in levels])
    heights = axes.transAxes.inverted().transform(on_screen)[:, 1]
    for (level, label), height in zip(levels.items(), spread(heights, LABEL_GAP), strict=True):
        axes.annotate(
            label, (1, level), (1.06, height), xycoords=("axes fraction", "data"),
            textcoords="axes fraction", va="center", fontsize=10,
            arrowprops={"arrowstyle": "-", "color": INK, "linewidth": 0.6, "shrinkA": 2,
                        "shrinkB": 0, "relpos": (0, 0.5)},
        )  # fmt: skip


def spread(positions: np.ndarray, gap: float) -> np.ndarray:
    """Move sorted positions as little as leaves `gap` between neighbours."""
    steps = gap * np.arange(len(positions))
    return steps + isotonic_regression(positions - steps).x


@styled
def peak_memory(measured: pd.DataFrame, look: Look) -> Figure:
    """Draw the measured peak of live tensors on each implementation's own account."""
    figure, axes = new_figure()
    axes.set_title("Peak of all live tensors by sequence length")
    rows = with_value(measured, "measured_bytes") if len(measured) else measured
    if rows.empty:
        say_instead(axes, f"No peak was measured: {why_nothing(measured)}.")
        return figure
    for name in present(look, measured):
        account = measured[measured["implementation"] == name].sort_values("length")
        own = rows[rows["implementation"] == name]
        for run in runs_without_gap(list(measured["length"]), list(account["length"])):
            part = account[account["length"].isin(run)]
            axes.plot(part["length"], part["account_bytes"] / 1e6, color=look[name]["color"])
        axes.plot(own["length"], own["measured_bytes"] / 1e6, linestyle="none",
                  label=name, **look[name])  # fmt: skip
    one = measured.drop_duplicates("length").sort_values("length")
    axes.plot(one["length"], one["score_matrix_bytes"] / 1e6, color=INK, linestyle=":",
              label="one score matrix")  # fmt: skip
    length_axis(axes, measured["length"])
    log_axis(axes)
    axes.set_ylabel("peak (MB = 1e6 bytes)")
    meaning = "markers: measured; lines: each implementation's own account"
    note(figure, axes, [meaning, *gaps(measured, rows, "measurement")])
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure
