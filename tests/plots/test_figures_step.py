"""The step: every figure of the plan, whole files, one stamp."""

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from plots import tables
from tiled_attention import plan as plan_module
from tiled_attention import store
from tiled_attention.evidence import Evidence
from tiled_attention.pipeline import FIGURES, MEASURED
from tiled_attention.plan import Plan, make_plan
from tiled_attention.stamps import write_stamp
from tiled_attention.steps import figures

OVERRIDES = ("experiment=smoke", "platform=here")


def result_tables(plan: Plan, step: str, subject: str | None) -> dict[str, pd.DataFrame]:
    names = sorted(plan.config.implementations)
    if step == "correctness":
        return {"result": tables.judged(str(subject), [0.0, 0.3, 0.5])}
    if step == "peak_memory":
        return {"result": tables.peaks([str(subject)])}
    return {
        "gate_sensitivity": {"result": tables.mutants()},
        "byte_arithmetic": {"result": tables.counted(), "devices": tables.devices({"A B": 80})},
        "cpu_timing": {"result": tables.timing(names)},
        "cpu_bandwidth": {"result": tables.cpu_bandwidth()},
        "gpu_bandwidth": {"result": tables.gpu_bandwidth()},
        "gpu_memory": {"result": tables.gpu_memory()},
        "gpu_traffic": {"result": tables.gpu_traffic()},
        "crossover": tables.fits([name for name in names if name != "naive"]),
        "kernel_resources": {"result": pd.DataFrame({"implementation": ["triton_flash"]})},
    }[step]


def write_results(plan: Plan, platform: str, steps: tuple[str, ...], version: str = "") -> None:
    for step in steps:
        for planned in plan.results[step]:
            folder = replace(planned, platform=platform).folder
            folder = folder.with_name(version or folder.name)
            found = result_tables(plan, step, planned.subject)
            store.write(folder, found, {"ended": "2026-01-01T00:00:00Z"})


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.setattr(plan_module, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(plan_module, "REPORTS", tmp_path / "reports")
    plan = make_plan(OVERRIDES)
    write_results(plan, "here", MEASURED)
    return plan


def test_draws_the_figures_of_the_plan(plan: Plan) -> None:
    assert set(figures.draw(Evidence(plan))) == set(FIGURES)


def test_an_implementation_looks_the_same_in_every_figure(plan: Plan) -> None:
    drawn = figures.draw(Evidence(plan))
    shared = {"tiled": set(), "query_tiled": set()}
    for name in ("time_by_length", "ratio_by_length", "bytes_by_length", "peak_memory"):
        (axes,) = drawn[name].axes
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            if label.split(",")[0] in shared and label != "tiled, article":
                line = handle.lines[0] if hasattr(handle, "lines") else handle
                shared[label.split(",")[0]].add((line.get_color(), line.get_marker()))
    assert {name: len(found) for name, found in shared.items()} == {"tiled": 1, "query_tiled": 1}
    assert shared["tiled"].isdisjoint(shared["query_tiled"])


def test_other_platforms_stand_beside_with_the_age_of_their_version(plan: Plan) -> None:
    write_results(plan, "epyc", ("cpu_timing",))
    write_results(plan, "xeon", ("cpu_timing",), version="0123456789ab")
    fresh = make_plan(OVERRIDES)
    said = tables.words(figures.draw(Evidence(fresh))["ratio_by_length"])
    assert "tiled on epyc tiled on xeon (older version)" in said


def test_writes_every_file_and_then_a_stamp_that_names_them(plan: Plan) -> None:
    figures.render(plan)
    files = plan.figure_files()
    assert {path.stem for path in files} == set(FIGURES)
    for path in files:
        start = b"\x89PNG" if path.suffix == ".png" else b"<?xml"
        assert path.read_bytes().startswith(start)
    assert json.loads(plan.stamp("figures").read_text()) == {
        "step": "figures",
        "version": plan.rendered["figures"].version,
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    }
    everything = {path: path.read_bytes() for path in plan.report_folder().rglob("*.*")}
    figures.render(plan)
    assert {path: path.read_bytes() for path in plan.report_folder().rglob("*.*")} == everything


def test_a_missing_result_leaves_neither_figures_nor_stamp(plan: Plan) -> None:
    (plan.folder("crossover") / "provenance.json").unlink()
    with pytest.raises(store.StoreError, match="crossover"):
        figures.render(plan)
    assert not plan.report_folder().exists()


def test_a_stamp_takes_the_place_of_older_ones_of_its_step(plan: Plan) -> None:
    folder = plan.stamp("figures").parent
    folder.mkdir(parents=True)
    for name in ("figures-0123456789ab.json", "report-0123456789ab.json"):
        (folder / name).write_text("{}")
    write_stamp(plan, "figures", [])
    assert sorted(path.name for path in folder.iterdir()) == [
        plan.stamp("figures").name,
        "report-0123456789ab.json",
    ]


def test_the_step_imports_no_plumbing() -> None:
    code = "import sys, tiled_attention.steps.figures; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(store.ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "tiled_attention.program" not in done.stdout.split()
