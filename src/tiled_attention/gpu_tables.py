"""What was measured on a GPU, of this platform or a recorded one, for figures and report."""

from collections.abc import Mapping

import pandas as pd

from tiled_attention.evidence import Evidence
from tiled_attention.gpu_runs import with_rate_interval

Tables = Mapping[str, Mapping[str, pd.DataFrame]]

MEASURED_ON_GPU = ("gpu_timing", "gpu_bandwidth", "gpu_memory", "gpu_traffic")
HBM, SHARED = "device memory and its caches", "shared memory"


def with_gpu_tables(evidence: Evidence) -> Tables:
    """Return this platform's tables; where it has no GPU's numbers, the first recorded ones.

    Only what is of this run's version counts. Each "result" has a column that names its platform.
    """
    found = {name: own for name, own in evidence.tables.items() if name not in MEASURED_ON_GPU}
    for step in MEASURED_ON_GPU:
        for recorded in evidence.everywhere(step):
            tables = recorded.stored.tables()
            result = tables["result"]
            if recorded.current and (result["status"] == "ok").any():
                platform = recorded.stored.platform
                if step == "gpu_timing":
                    result = with_rate_interval(result)
                found[step] = {**tables, "result": result.assign(platform=platform)}
                break
    return found


def traffic(tables: Tables) -> pd.DataFrame:
    """Return the calls whose HBM traffic was counted, with their rate where they were timed."""
    counted = tables.get("gpu_traffic", {}).get("result", pd.DataFrame())
    if counted.empty:
        return counted
    rows = counted[counted["status"] == "ok"]
    rows = rows.assign(
        moved_bytes=rows["read_bytes"] + rows["written_bytes"],
        flop=4 * rows["batch"] * rows["heads"] * rows["length"] ** 2 * rows["head_dim"],
    )
    rows["flop_per_byte"] = rows["flop"] / rows["moved_bytes"]
    timed = tables.get("gpu_timing", {}).get("result", pd.DataFrame())
    if timed.empty:
        return rows.assign(tflops=float("nan"))
    shape = ["platform", "implementation", "dtype", "length", "head_dim", "causal"]
    return rows.merge(timed[[*shape, "tflops"]], how="left", on=shape)


def hbm_rate(bandwidth: pd.DataFrame) -> float | None:
    """Return the median GB/s of the largest working set that was read from device memory."""
    if bandwidth.empty:
        return None
    rows = bandwidth[(bandwidth["status"] == "ok") & (bandwidth["read_from"] == HBM)]
    if rows.empty:
        return None
    return float(rows.sort_values("working_set_bytes")["gb_per_s"].iloc[-1])


def points_and_roof(
    tables: Tables,
) -> tuple[str | None, pd.DataFrame, dict[str, float] | None]:
    """Return the platform, the calls with counted traffic and a time, and the measured roof."""
    points = traffic(tables)
    points = points.dropna(subset=["tflops"]) if len(points) else points
    rate = hbm_rate(tables.get("gpu_bandwidth", {}).get("result", pd.DataFrame()))
    if points.empty or rate is None:
        return None, points, None
    dtype = points["dtype"].iloc[0]
    rates = tables["gpu_timing"]["rates"].query(f"dtype == '{dtype}'")["matrix_tflops"]
    roof = {"tflops": float(rates.astype(float).median()), "gb_per_s": rate}
    return points["platform"].iloc[0], points, roof
