"""When does it pay on your device? From measured peaks and ratios, and the memory it has."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tiled_attention.config import Device
from tiled_attention.gpu_runs import GpuRun
from tiled_attention.gpu_tables import hbm_rate
from tiled_attention.report.gpu import FUSED_ON_CPU, FUSED_ON_GPU, UNFUSED

Tables = Mapping[str, Mapping[str, pd.DataFrame]]

SCORE_PASSES = 4  # naive writes scores, reads them, writes probabilities, reads them


def held_per_score_matrix(tables: Tables) -> dict[str, Any] | None:
    """Return how many score matrices naive really holds at its peak: on a GPU, else on the CPU."""
    gpu = tables.get("gpu_memory", {}).get("result", pd.DataFrame())
    if len(gpu):
        row = gpu.iloc[-1]
        factor = row["peak_bytes"] / row["score_matrix_bytes"]
        return {"factor": float(factor), "where": row["platform"], "length": row["largest_length"]}
    cpu = tables["peak_memory"]["result"].query("implementation == 'naive' and status == 'ok'")
    if cpu.empty:
        return None
    row = cpu.sort_values("length").iloc[-1]
    factor = row["measured_bytes"] / row["score_matrix_bytes"]
    return {"factor": float(factor), "where": "this CPU", "length": row["length"]}


def memory_limits(
    devices: Mapping[str, Device], heads: Sequence[int], item_bytes: int, factor: float
) -> list[dict[str, Any]]:
    """Return, by device, the longest sequence whose naive peak fits it (decimal reading)."""
    rows = [
        {
            "name": device.name,
            "memory": device.memory,
            "lengths": [
                math.isqrt(int(device.memory * 10**9 / (factor * count * item_bytes)))
                for count in heads
            ],
        }
        for device in devices.values()
    ]
    return sorted(rows, key=lambda row: (row["memory"], row["name"]))


def pays_from(rows: pd.DataFrame, implementation: str) -> dict[str, Any]:
    """Return the first length from which on every longer one is faster than naive for sure.

    `length` is None where the longest timed is not. `lengths` are those that were timed.
    """
    own = rows[(rows["implementation"] == implementation) & (rows["status"] == "ok")]
    own = own[own["ratio_to_naive"].notna()].sort_values("length", ascending=False)
    found = None
    for row in own.to_dict("records"):
        if row["ratio_ci_high"] >= 1:
            break
        found = row["length"]
    return {"length": found, "lengths": sorted(own["length"].unique())}


def speed_thresholds(tables: Tables, runs: Sequence[GpuRun]) -> list[dict[str, Any]]:
    """Return, for the CPU and each shape on each GPU, from which length on tiling pays."""
    cpu = tables["cpu_timing"]["result"].query("series == 'lengths'")
    found: list[dict[str, Any]] = [
        {"where": "this CPU", "shape": "the article's", "current": True,
         "unfused": pays_from(cpu, UNFUSED), "fused": pays_from(cpu, FUSED_ON_CPU)}
    ]  # fmt: skip
    for run in runs:
        for (dtype, head_dim, causal), own in run.result.groupby(
            ["dtype", "head_dim", "causal"], sort=False
        ):
            shape = f"{dtype}, head_dim {head_dim}{', causal' if causal else ''}"
            found.append(
                {"where": run.platform, "shape": shape, "current": run.current,
                 "unfused": pays_from(own, UNFUSED), "fused": pays_from(own, FUSED_ON_GPU)}
            )  # fmt: skip
    return [row for row in found if row["fused"]["lengths"] or row["unfused"]["lengths"]]


def fusion_bound(
    head_dim: int, item_bytes: int, matrix_tflops: float, memory_gb_per_s: float
) -> float:
    """Return the speed-up that fusion gives where both run at the device's own rates.

    Both do 4 head_dim FLOP for each score; unfused attention also moves each score four times.
    """
    matrix_seconds = 4 * head_dim / (matrix_tflops * 1e12)
    memory_seconds = SCORE_PASSES * item_bytes / (memory_gb_per_s * 1e9)
    return 1 + memory_seconds / matrix_seconds


def bounds(tables: Tables) -> list[dict[str, Any]]:
    """Return that bound beside the measured speed-up, by head_dim, not causal, longest length."""
    timing = tables.get("gpu_timing", {})
    rate = hbm_rate(tables.get("gpu_bandwidth", {}).get("result", pd.DataFrame()))
    if not timing or rate is None or "rates" not in timing:
        return []
    rates = timing["rates"][~timing["rates"]["causal"].astype(bool)]
    found = []
    for (dtype, head_dim), own in rates.groupby(["dtype", "head_dim"], sort=False):
        last = own.sort_values("length").iloc[-1]
        result = timing["result"].query(
            f"dtype == '{dtype}' and head_dim == {head_dim} and length == {last['length']} "
            f"and implementation == '{FUSED_ON_GPU}' and not causal and status == 'ok'"
        )
        if result.empty or pd.isna(result["ratio_to_naive"].iloc[0]):
            continue
        found.append(
            {
                "platform": result["platform"].iloc[0],
                "dtype": dtype,
                "head_dim": int(head_dim),
                "length": int(last["length"]),
                "matrix_tflops": float(last["matrix_tflops"]),
                "gb_per_s": rate,
                "bound": fusion_bound(
                    int(head_dim), 4 if dtype == "float32" else 2,
                    float(last["matrix_tflops"]), rate,
                ),
                "measured": 1 / float(result["ratio_to_naive"].iloc[0]),
            }
        )  # fmt: skip
    return found
