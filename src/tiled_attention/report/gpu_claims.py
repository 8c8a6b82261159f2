"""The rules for the claims that need a GPU's timings: this platform's, or recorded ones."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tiled_attention.gpu_tables import HBM, SHARED
from tiled_attention.report.finding import (
    CONTRADICTED,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    UNTESTABLE,
    Finding,
)
from tiled_attention.report.gpu import FUSED_ON_CPU, FUSED_ON_GPU, UNFUSED, longest

Tables = Mapping[str, Mapping[str, pd.DataFrame]]
Article = Mapping[str, Any]

ABOUT = 2  # "about 100" is from 50 to 200
NO_TIMES = "no GPU was timed with this version of the kernels"


def benefit_is_the_gpus(tables: Tables, article: Article) -> Finding:
    """C6: does tiling pay on the GPU only, fused or not, or on the CPU as well?"""
    gpu = tables.get("gpu_timing", {}).get("result", pd.DataFrame())
    cpu = tables["cpu_timing"]["result"].query("series == 'lengths'")
    cells = {
        "fused on the GPU": longest(gpu, FUSED_ON_GPU) if len(gpu) else None,
        "unfused on the GPU": longest(gpu, UNFUSED) if len(gpu) else None,
        "fused on the CPU": longest(cpu, FUSED_ON_CPU),
        "unfused on the CPU": longest(cpu, UNFUSED),
    }
    if any(cells[name] is None for name in ("fused on the GPU", "unfused on the GPU")):
        return Finding(UNTESTABLE, f"It needs a GPU's timings: {NO_TIMES}.")
    sentence = "Ratios to naive: " + ", ".join(
        f"{name} {row['ratio_to_naive']:.2f} [{row['ratio_ci_low']:.2f}, "
        f"{row['ratio_ci_high']:.2f}] at {row['length']:,}"
        for name, row in cells.items()
        if row is not None
    )
    sentence += f" (GPU: {gpu['platform'].iloc[0]})"
    pays = {name for name, row in cells.items() if row and row["ratio_ci_high"] < 1}
    loses = {name for name, row in cells.items() if row and row["ratio_ci_low"] > 1}
    if "fused on the GPU" in loses:
        return Finding(CONTRADICTED, f"{sentence}: fusion does not pay on the GPU.")
    on_cpu = sorted(name for name in pays if name.endswith("CPU"))
    if on_cpu:
        return Finding(CONTRADICTED, f"{sentence}: {' and '.join(on_cpu)} pays as well.")
    if "fused on the GPU" not in pays:
        return Finding(UNDECIDED, f"{sentence}: an interval spans 1.")
    if "unfused on the GPU" in loses:
        return Finding(PARTLY, f"{sentence}: it pays there alone, and only where it is fused.")
    return Finding(REPRODUCED, f"{sentence}.")


def gpu_speed_up(tables: Tables, article: Article) -> Finding:
    """C8: the fused kernel's speed-up over naive on every shape timed, against the published."""
    gpu = tables.get("gpu_timing", {}).get("result", pd.DataFrame())
    if gpu.empty:
        return Finding(UNTESTABLE, f"It needs a GPU's timings: {NO_TIMES}.")
    rows = gpu[(gpu["implementation"] == FUSED_ON_GPU) & gpu["ratio_to_naive"].notna()]
    if rows.empty:
        return Finding(UNTESTABLE, "The fused kernel and naive were not timed at one shape.")
    low, high = article["gpu_speed_up"]["low"], article["gpu_speed_up"]["high"]
    speed_up = 1 / rows["ratio_to_naive"]
    inside = (1 / rows["ratio_ci_low"] >= low) & (1 / rows["ratio_ci_high"] <= high)
    least, most = rows.loc[speed_up.idxmin()], rows.loc[speed_up.idxmax()]
    sentence = (
        f"On {gpu['platform'].iloc[0]} the fused kernel is {speed_up.min():.1f} times (at "
        f"{_shape(least)}) to {speed_up.max():.1f} times (at {_shape(most)}) as fast as naive; "
        f"{int(inside.sum())} of {len(rows)} shapes lie within {low:g} to {high:g}."
    )
    if inside.all():
        return Finding(REPRODUCED, sentence)
    return Finding(PARTLY if inside.any() else CONTRADICTED, sentence)


def memory_ratio(tables: Tables, article: Article) -> Finding:
    """C7: measured read bandwidth of shared memory over that of HBM; within a factor of two?"""
    rates = tables.get("gpu_bandwidth", {}).get("result", pd.DataFrame())
    if rates.empty:
        return Finding(UNTESTABLE, "It needs a GPU's bandwidth: none was measured.")
    shared = rates[rates["read_from"] == SHARED].iloc[0]
    hbm = rates[rates["read_from"] == HBM].sort_values("working_set_bytes").iloc[-1]
    ratio = shared["gb_per_s"] / hbm["gb_per_s"]
    low, high = shared["ci_low"] / hbm["ci_high"], shared["ci_high"] / hbm["ci_low"]
    sentence = (
        f"On {rates['platform'].iloc[0]} all multiprocessors read shared memory at "
        f"{shared['gb_per_s'] / 1e3:.1f} TB/s and HBM at {hbm['gb_per_s'] / 1e3:.2f} TB/s, "
        f"{ratio:.1f} [{low:.1f}, {high:.1f}] times as fast"
    )
    cpu = tables.get("cpu_bandwidth", {}).get("result", pd.DataFrame())
    if len(cpu):
        every = cpu[cpu["cores"] == cpu["cores"].max()].sort_values("working_set_bytes")
        own = every["gb_per_s"].iloc[0] / every["gb_per_s"].iloc[-1]
        sentence += f"; on this CPU the first cache is {own:.1f} times as fast as main memory"
    published = article["memory_ratio"]
    right = published / ABOUT <= ratio <= published * ABOUT
    return Finding(REPRODUCED if right else CONTRADICTED, f"{sentence}.")


def _shape(row: pd.Series) -> str:
    causal = ", causal" if row["causal"] else ""
    return f"S = {row['length']:,}, head_dim {row['head_dim']}{causal}, {row['dtype']}"
