"""When it pays: by measured ratios, by peaks, and by memory."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from plots import tables
from tiled_attention.config import Device
from tiled_attention.gpu_tables import hbm_rate, traffic
from tiled_attention.report import threshold


def ratios(*values: float) -> pd.DataFrame:
    return pd.DataFrame(
        {"implementation": "tiled", "length": 512 * 2**index, "status": "ok",
         "ratio_to_naive": value, "ratio_ci_high": value * 1.05}
        for index, value in enumerate(values)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("values", "length"),
    [
        ((1.3, 1.1, 0.9, 0.8), 2048),
        ((0.9, 0.8), 512),
        ((0.9, 1.2, 0.8), 2048),  # a later length that loses resets it
        ((0.8, 0.97), None),  # an interval that spans 1 is not for sure
        ((1.2, 1.1), None),
        ((), None),
    ],
)
def test_pays_from(values: tuple[float, ...], length: int | None) -> None:
    rows = ratios(*values)
    rows = rows if len(rows) else ratios(1.0)[:0]
    assert threshold.pays_from(rows, "tiled")["length"] == length


def test_bound_of_fusion_by_hand() -> None:
    # 512 FLOP at 512 TFLOP/s are 1 ps; 8 bytes at 4 TB/s are 2 ps.
    assert threshold.fusion_bound(128, 2, 512.0, 4000.0) == pytest.approx(3.0)
    assert threshold.fusion_bound(64, 2, 512.0, 4000.0) == pytest.approx(5.0)


def test_memory_limit_is_the_longest_that_fits() -> None:
    devices = {"a": Device(name="A", memory=40)}
    (row,) = threshold.memory_limits(devices, [32], 2, factor=1.0)
    assert row["lengths"] == [25_000]
    (row,) = threshold.memory_limits(devices, [32], 2, factor=2.0)
    assert row["lengths"] == [17_677]


def gpu_evidence() -> dict[str, Any]:
    return {
        step: {"result": table.assign(platform="h200")}
        for step, table in {
            "gpu_timing": tables.gpu_timing({"naive": 1.0, "tiled": 4.0, "triton_flash": 0.25}),
            "gpu_bandwidth": tables.gpu_bandwidth(),
            "gpu_memory": tables.gpu_memory(held=3.0),
            "gpu_traffic": tables.gpu_traffic(),
        }.items()
    }


def test_held_is_a_gpus_where_there_is_one_and_else_the_cpus() -> None:
    evidence = gpu_evidence() | {"peak_memory": {"result": tables.peaks(["naive"])}}
    found = threshold.held_per_score_matrix(evidence)
    assert found is not None
    assert found["factor"] == pytest.approx(3.0)
    assert found["where"] == "h200"
    del evidence["gpu_memory"]
    found = threshold.held_per_score_matrix(evidence)
    assert found is not None
    assert found["where"] == "this CPU"


def test_bounds_stand_beside_the_measured_speed_up() -> None:
    evidence = gpu_evidence()
    evidence["gpu_timing"]["rates"] = tables.gpu_rates()
    rows = threshold.bounds(evidence)
    assert [row["head_dim"] for row in rows] == [64, 128]
    assert all(row["measured"] == pytest.approx(4.0) and row["length"] == 8192 for row in rows)
    assert rows[1]["bound"] == pytest.approx(1 + (8 / 4e12) / (512 / 700e12))
    assert threshold.bounds({}) == []


def test_speed_thresholds_of_every_shape() -> None:
    run = SimpleNamespace(platform="h200", current=True,
                          result=gpu_evidence()["gpu_timing"]["result"])  # fmt: skip
    rows = threshold.speed_thresholds({"cpu_timing": {"result": tables.timing()}}, [run])
    assert [row["where"] for row in rows] == ["this CPU", *["h200"] * 4]
    assert rows[1]["fused"]["length"] == 512
    assert rows[1]["unfused"]["length"] is None


def test_hbm_is_the_largest_working_set() -> None:
    assert hbm_rate(tables.gpu_bandwidth(hbm=1234.0)) == 1234.0
    assert hbm_rate(pd.DataFrame()) is None


def test_traffic_meets_its_time() -> None:
    rows = traffic(gpu_evidence())
    assert len(rows) == 4
    assert rows["tflops"].notna().all()
    naive = rows[rows["implementation"] == "naive"].iloc[0]
    assert naive["flop_per_byte"] == pytest.approx(naive["flop"] / naive["standard_bytes"])
    assert traffic({}).empty
