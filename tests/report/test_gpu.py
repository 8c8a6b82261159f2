"""The GPU section: own platform first, older versions marked, an interpreted pass no timing."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from plots import tables
from plots.test_figures_step import result_tables
from tiled_attention import plan as plan_module
from tiled_attention import store
from tiled_attention.evidence import Evidence
from tiled_attention.gpu_runs import runs
from tiled_attention.gpu_tables import with_gpu_tables
from tiled_attention.pipeline import STEPS
from tiled_attention.plan import Plan, make_plan
from tiled_attention.report import gpu

RATIOS = {"naive": 1.0, "tiled": 4.0, "triton_flash": 0.2}
GPU = {"name": "NVIDIA H200", "memory_bytes": 150e9, "driver": "1.2", "power_limit_w": 700.0}
CONDITIONS = pd.DataFrame(
    {"sm_clock_mhz": [1500, 1980], "memory_clock_mhz": [3201, 3201], "power_w": [300.0, 690.0],
     "temperature_c": [40, 61], "throttled": ["", "power cap"]}
)  # fmt: skip


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(plan_module, "RESULTS", tmp_path)
    return make_plan(["experiment=smoke", "platform=here", "gpu=none"])


def write(plan: Plan, step: str, platform: str, version: str = "", **options: object) -> None:
    for planned in plan.with_gpu[step]:
        folder = replace(planned, platform=platform).folder
        folder = folder.with_name(version or folder.name)
        found = (
            {
                "result": tables.gpu_timing(RATIOS),
                "conditions": CONDITIONS,
                "rates": tables.gpu_rates(),
            }
            if step == "gpu_timing"
            else result_tables(plan, step, planned.subject)
        )
        record = {"ended": "2026-01-01", "started": "2026-01-01", "machine": {"gpus": [GPU]}}
        store.write(folder, found, record | {"options": options})


def test_recorded_platforms_stand_beside_with_their_age(plan: Plan) -> None:
    write(plan, "gpu_timing", "h200")
    write(plan, "gpu_timing", "a100", version="000000000000")
    found = {run.platform: run for run in runs(Evidence(plan))}
    assert found["h200"].current
    assert not found["a100"].current
    assert found["a100"].version == "000000000000"
    assert found["h200"].device["name"] == "NVIDIA H200"


def test_own_platform_comes_first(plan: Plan) -> None:
    write(plan, "gpu_timing", "a100")
    write(plan, "gpu_timing", "here")
    own = make_plan(["experiment=smoke", "platform=here", "gpu=cuda"])
    assert [run.platform for run in runs(Evidence(own))] == ["here", "a100"]


def test_platforms_of_this_run_are_no_recorded_ones(plan: Plan) -> None:
    write(plan, "gpu_timing", "h200")
    many = make_plan(["experiment=smoke", "platform=here", "platforms=[h200]"])
    assert [run.platform for run in runs(Evidence(many))] == ["h200"]
    assert many.recorded == ()


def test_an_interpreted_result_is_no_older_version(plan: Plan) -> None:
    write(plan, "gpu_timing", "a100", version="000000000000", interpreted=True)
    assert runs(Evidence(plan)) == []


def test_rates_have_the_interval_of_the_times(plan: Plan) -> None:
    write(plan, "gpu_timing", "h200")
    (run,) = runs(Evidence(plan))
    row = run.result.iloc[0]
    assert row["tflops_low"] == pytest.approx(row["tflops"] / 1.02)
    assert row["tflops_high"] == pytest.approx(row["tflops"] / 0.98)
    shapes = gpu.by_shape(run)
    assert [(it["head_dim"], it["causal"]) for it in shapes] == [
        (64, False), (64, True), (128, False), (128, True),
    ]  # fmt: skip
    assert shapes[0]["lengths"] == [512, 2048, 8192]
    assert set(shapes[0]["rows"]) == set(RATIOS)


def test_conditions_tell_the_range_and_what_held_the_clocks(plan: Plan) -> None:
    write(plan, "gpu_timing", "h200")
    (run,) = runs(Evidence(plan))
    found = gpu.conditions(run)
    assert found["sm_clock_mhz"] == (1500, 1980)
    assert found["throttled"] == {"power cap": 1}
    assert found["rounds"] == 2


def test_reasons_are_grouped_by_implementation(plan: Plan) -> None:
    write(plan, "gpu_timing", "h200")
    (run,) = runs(Evidence(plan))
    naive = run.result["implementation"] == "naive"
    longest, tiled = run.result["length"] == 8192, run.result["implementation"] == "tiled"
    run.result.loc[naive & longest, "status"] = "skipped: needs 170.0 GB, 140.0 GB are available"
    run.result.loc[tiled, "status"] = "not timed: failed correctness in 1 of 9 cases"
    assert gpu.not_timed(run) == {
        "naive": {"skipped: needs 170.0 GB, 140.0 GB are available": " at S = 8,192"},
        "tiled": {"not timed: failed correctness in 1 of 9 cases": ""},
    }


def test_two_by_two_takes_the_longest_with_a_ratio(plan: Plan) -> None:
    write(plan, "gpu_timing", "h200")
    cpu = tables.timing().assign(head_dim=64, causal=False)
    found = gpu.two_by_two({"cpu_timing": {"result": cpu}}, runs(Evidence(plan)))
    unfused, fused = found
    assert unfused["cpu"]["length"] == 8192
    assert unfused["gpus"][0]["ratio_to_naive"] == 4.0
    assert (fused["gpus"][0]["head_dim"], fused["gpus"][0]["causal"]) == (128, False)
    assert fused["gpus"][0]["ratio_to_naive"] == 0.2


def test_without_any_gpu_the_claims_get_no_gpu_table(plan: Plan) -> None:
    for step in STEPS:
        if STEPS[step].device == "cpu" and step != "verdict":
            write(plan, step, "here")
    assert "gpu_timing" not in with_gpu_tables(Evidence(plan))
    write(plan, "gpu_timing", "h200")
    with_gpu = with_gpu_tables(Evidence(make_plan(plan.overrides)))
    assert set(with_gpu["gpu_timing"]["result"]["platform"]) == {"h200"}
