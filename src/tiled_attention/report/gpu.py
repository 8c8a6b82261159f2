"""The report's GPU section: each platform's rates, and the four ways to tile side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tiled_attention.evidence import Evidence
from tiled_attention.gpu_runs import GpuRun

Tables = Mapping[str, Mapping[str, pd.DataFrame]]

GRID = ["dtype", "head_dim", "causal"]
UNFUSED, FUSED_ON_CPU, FUSED_ON_GPU = "tiled", "sdpa", "triton_flash"


def by_shape(run: GpuRun) -> list[dict[str, Any]]:
    """Return a table for each dtype, head_dim and causal: implementations by length."""
    found = []
    for shape, own in run.result.groupby(GRID, sort=False):
        found.append(
            {
                **dict(zip(GRID, shape, strict=True)),
                "lengths": sorted(own["length"].unique()),
                "rows": {
                    name: {row["length"]: row for row in rows.to_dict("records")}
                    for name, rows in own.groupby("implementation", sort=False)
                    if (rows["status"] == "ok").any()
                },
            }
        )
    return found


def not_timed(run: GpuRun) -> dict[str, dict[str, str]]:
    """Return {implementation: {reason: lengths, or all}} of what has no time."""
    found: dict[str, dict[str, str]] = {}
    for name, own in run.result.groupby("implementation", sort=False):
        missing = own[own["status"] != "ok"]
        for reason, rows in missing.groupby("status", sort=False):
            lengths = ", ".join(f"{it:,}" for it in sorted(rows["length"].unique()))
            every = len(rows) == len(own)
            found.setdefault(str(name), {})[str(reason)] = "" if every else f" at S = {lengths}"
    return found


def conditions(run: GpuRun) -> dict[str, Any] | None:
    """Return the range of clocks, power and temperature, and how often the clocks were held."""
    states = run.tables.get("conditions", pd.DataFrame())
    if states.empty:
        return None
    throttled = states["throttled"].fillna("").astype(str)
    reasons = throttled[throttled != ""].value_counts()
    return {
        **{
            name: (states[name].min(), states[name].max())
            for name in ("sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c")
        },
        "rounds": len(states),
        "throttled": {str(reason): int(count) for reason, count in reasons.items()},
    }


def longest(rows: pd.DataFrame, implementation: str) -> dict[str, Any] | None:
    """Return an implementation's row with a ratio at the greatest length and head_dim.

    Of those that are not causal, where there are any.
    """
    own = rows[(rows["implementation"] == implementation) & (rows["status"] == "ok")]
    own = own[own["ratio_to_naive"].notna()]
    if own.empty:
        return None
    order = own.sort_values(["causal", "head_dim", "length"], ascending=[True, False, False])
    return {str(key): value for key, value in order.iloc[0].to_dict().items()}


def two_by_two(tables: Tables, found: Sequence[GpuRun]) -> list[dict[str, Any]]:
    """Return, for unfused tiling and for fusion, the ratio to naive on the CPU and each GPU."""
    cpu = tables["cpu_timing"]["result"].query("series == 'lengths'")
    return [
        {
            "way": way,
            "cpu": longest(cpu, on_cpu),
            "cpu_name": on_cpu,
            "gpu_name": on_gpu,
            "gpus": [longest(run.result, on_gpu) for run in found],
        }
        for way, on_cpu, on_gpu in (
            ("unfused tiling", UNFUSED, UNFUSED),
            ("fused", FUSED_ON_CPU, FUSED_ON_GPU),
        )
    ]


def not_counted(evidence: Evidence) -> dict[str, str]:
    """Return {platform: reason} of those GPUs whose traffic no counter has seen."""
    found = {}
    for recorded in evidence.everywhere("gpu_traffic"):
        reasons = [it for it in recorded.stored.table()["status"].unique() if it != "ok"]
        if reasons:
            found[recorded.stored.platform] = "; ".join(reasons)
    return found
