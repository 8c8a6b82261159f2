"""Read bandwidth by working set, and the roofline that bandwidth and matrix rate make."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tiled_attention.plots.style import (
    INK,
    Look,
    legend_below,
    log_axis,
    new_figure,
    note,
    present,
    reach,
    say_instead,
    styled,
)

RATE = ("gb_per_s", "ci_low", "ci_high")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
EVERY = 4  # powers of two between two ticks


@styled
def bandwidth(cpu: pd.DataFrame, gpus: Mapping[str, pd.DataFrame], look: Look) -> Figure:
    """Draw read bandwidth by the working set of all cores or multiprocessors together.

    cpu is cpu_bandwidth's table; gpus holds gpu_bandwidth's by platform.
    """
    figure, axes = new_figure()
    axes.set_title("Read bandwidth by working set")
    series: dict[str, pd.DataFrame] = {}
    for cores, own in cpu[cpu["status"] == "ok"].groupby("cores"):
        name = f"CPU, {cores} {'core' if cores == 1 else 'cores'}"
        series[name] = own.assign(working_set_bytes=cores * own["working_set_bytes"])
    for platform, table in gpus.items():
        for read_from, own in table[table["status"] == "ok"].groupby("read_from", sort=False):
            series[f"{platform}: {read_from}"] = own
    if not series:
        say_instead(axes, "No bandwidth was measured.")
        return figure
    for (name, own), style in zip(series.items(), list(look.values()) * len(series), strict=False):
        own = own.astype(dict.fromkeys(RATE, float)).sort_values("working_set_bytes")
        axes.errorbar(own["working_set_bytes"], own["gb_per_s"], yerr=reach(own, *RATE),
                      label=name, **style)  # fmt: skip
    _bytes_axis(axes, "working set of all that read together")
    log_axis(axes)
    axes.set_ylabel("read bandwidth (GB/s), median and interval")
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure


def _bytes_axis(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=2)
    low, high = np.log2(axes.get_xlim())
    powers = range(int(np.ceil(low / EVERY)) * EVERY, int(high) + 1, EVERY)
    axes.set_xticks([2.0**it for it in powers], [in_units(2**it) for it in powers])
    axes.minorticks_off()
    axes.set_xlabel(label)


def in_units(size: int) -> str:
    """Return a power of two in the largest unit that leaves it whole: 65536 is 64 KiB."""
    unit = min(len(UNITS) - 1, (size.bit_length() - 1) // 10)
    return f"{size >> 10 * unit} {UNITS[unit]}"


@styled
def roofline(
    platform: str | None, points: pd.DataFrame, roof: Mapping[str, float] | None, look: Look
) -> Figure:
    """Draw the rate reached by work per byte of HBM traffic, under the device's own roof.

    points has implementation, length, flop_per_byte and tflops; roof the measured `tflops` of a
    matrix product and `gb_per_s` of HBM.
    """
    figure, axes = new_figure()
    axes.set_title("Roofline" + (f" of {platform}" if platform else ""))
    if points.empty or roof is None:
        say_instead(axes, "No roofline: it needs a GPU's times, its bandwidth, and its hardware "
                          "counters, and one of these was not measured.")  # fmt: skip
        return figure
    ridge = 1e3 * roof["tflops"] / roof["gb_per_s"]
    ends = [*points["flop_per_byte"], ridge]
    intensity = np.geomspace(min(ends) / 2, max(ends) * 2, 100)
    rates = np.minimum(roof["tflops"], intensity * roof["gb_per_s"] / 1e3)
    axes.plot(intensity, rates, color=INK, label="roof: measured bandwidth and matrix rate")
    for name in present(look, points):
        own = points[points["implementation"] == name].sort_values("length")
        axes.plot(own["flop_per_byte"], own["tflops"], linestyle="none", label=name, **look[name])
        for row in own.to_dict("records"):
            axes.annotate(f"{row['length']:,}", (row["flop_per_byte"], row["tflops"]), (6, -12),
                          textcoords="offset points", fontsize=10)  # fmt: skip
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xlabel("work by HBM traffic (FLOP per byte, by hardware counters)")
    log_axis(axes)
    axes.set_ylabel("TFLOP/s")
    note(figure, axes, ["numbers beside the points: sequence length"])
    legend_below(figure, *axes.get_legend_handles_labels())
    return figure
