"""Bytes by length: counted, and measured."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tiled_attention.config import Table
from tiled_attention.plots.style import (
    INK,
    legend_below,
    length_axis,
    looks,
    new_figure,
    say_instead,
    size_axis,
)
from tiled_attention.sizes import naive_bytes, query_tiled_bytes, tiled_bytes

SHORTEST, LONGEST = 1024, 262_144


def bytes_by_length(counted: pd.DataFrame, devices: pd.DataFrame, table: Table) -> Figure:
    """Counted scores by length, with the memory of devices (decimal reading) as levels."""
    figure, axes = new_figure()
    lengths = [int(length) for length in np.geomspace(SHORTEST, LONGEST, 60)]
    shape = (table.heads, table.batch, table.dtype)
    curves = {
        "naive": ("naive_bytes", [naive_bytes(it, *shape) for it in lengths], "naive, S x S"),
        "tiled": (
            "tiled_bytes",
            [tiled_bytes(it, *shape, table.block_size) for it in lengths],
            "tiled, S x block",
        ),
        "query_tiled": (
            "query_tiled_bytes",
            [query_tiled_bytes(it, *shape, table.block_size) for it in lengths],
            "query-tiled, block x block",
        ),
    }
    for (_, look), (column, sizes, label) in zip(
        looks(list(curves)).items(), curves.values(), strict=True
    ):
        axes.plot(lengths, np.array(sizes) / 1e9, color=look["color"])
        axes.plot(counted["length"], counted[column] / 1e9, linestyle="none", label=label, **look)
    decimal = devices[devices["reading"] == "decimal"].drop_duplicates("device")
    for index, (memory, same) in enumerate(decimal.groupby("memory_bytes")):
        names = " = ".join(sorted(str(name).upper().split("_")[0] for name in same["device"]))
        level = float(memory) / 1e9
        axes.axhline(level, color=INK, linewidth=0.8, linestyle=":")
        beside = SHORTEST * 3 ** (index % 2)  # neighbours side by side, as they lie close
        axes.annotate(f"{level:.0f} GB  {names}", (beside, level), xytext=(2, 1),
                      textcoords="offset points", fontsize=7.5, color=INK)  # fmt: skip
    length_axis(axes, [2**power for power in range(10, 19)])
    axes.tick_params(axis="x", rotation=30)
    axes.set_yscale("log")
    axes.set_ylabel("scores held at once (GB)")
    axes.set_title(f"{table.heads} heads, {table.dtype}, block {table.block_size}: what fits?")
    legend_below(figure, axes)
    return figure


def peak_memory(measured: pd.DataFrame) -> Figure:
    """Measured peak of live tensors (markers) on each implementation's own account (lines)."""
    figure, axes = new_figure()
    rows = measured[measured["status"] == "ok"].dropna(subset=["measured_bytes"])
    if rows.empty:
        say_instead(axes, "No peak was measured: " + "; ".join(measured["status"].unique()))
        return figure
    names = sorted(measured["implementation"].unique())
    for name, look in looks(names).items():
        own = rows[rows["implementation"] == name].sort_values("length")
        axes.plot(own["length"], own["account_bytes"] / 1e6, color=look["color"], linewidth=1)
        axes.plot(own["length"], own["measured_bytes"] / 1e6, linestyle="none", label=name, **look)
    one = measured.drop_duplicates("length").sort_values("length")
    axes.plot(one["length"], one["score_matrix_bytes"] / 1e6, color=INK, linestyle=":",
              label="one score matrix")  # fmt: skip
    length_axis(axes, measured["length"])
    size_axis(axes)
    axes.set_ylabel("peak of all live tensors (MB)")
    axes.set_title("Measured peak (points) and own account (lines)")
    legend_below(figure, axes)
    return figure
