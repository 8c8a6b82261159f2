"""Only what is right gets a number, on the threads that the row says."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from tiled_attention import judging
from tiled_attention.errors import StepError
from tiled_attention.implementations.tiled import Tiled
from tiled_attention.machine import usable_cores
from tiled_attention.steps import cpu_timing

PACKAGE = "tiled_attention.implementations"
IMPLEMENTATIONS = {
    "naive": {"_target_": f"{PACKAGE}.naive.Naive"},
    "tiled": {"_target_": f"{PACKAGE}.tiled.Tiled", "block_size": 16},
    "sdpa": {"_target_": f"{PACKAGE}.sdpa.Sdpa"},
}
SECTION: dict[str, Any] = {
    "problem": {"batch": 1, "heads": 2, "head_dim": 8, "dtype": "float32", "causal": False},
    "lengths": [16, 32],
    "block_sweep": {"implementation": "tiled", "length": 32, "block_sizes": []},
    "threads": 1,
    "max_seconds": 60.0,
    "seed": 0,
    "sampling": {
        "min_rounds": 3,
        "max_rounds": 3,
        "seconds": 0.01,
        "confidence": 0.95,
        "resamples": 100,
    },
}
SHAPE = SECTION["problem"]
NUMBERS = ["median_ms", "ci_low_ms", "ci_high_ms", "ratio_to_naive", "tflops"]


@pytest.fixture(autouse=True)
def machine_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, set_threads: Callable[[int], None]
) -> None:
    """Wait for no real timing, and leave the threads as they were."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def verdicts(*changes: dict[str, Any], lengths: tuple[int, ...] = (16, 32)) -> pd.DataFrame:
    """Every implementation right on every length, but for rows added by `changes`."""
    rows = [
        {
            "implementation": name,
            **SHAPE,
            "case": "timed",
            "length_q": length,
            "block_size": options.get("block_size"),
            "passed": True,
            "status": "ok",
        }
        for name, options in IMPLEMENTATIONS.items()
        for length in lengths
    ]
    return pd.DataFrame([*rows, *changes]).astype({"passed": "boolean"})


def measure(judged: pd.DataFrame | None = None, **changed: Any) -> dict[str, pd.DataFrame]:
    options = {"cpu_timing": SECTION | changed, "implementations": IMPLEMENTATIONS}
    judged = verdicts() if judged is None else judged
    return cpu_timing.measure(options, {"correctness": {"result": judged}})


def hard_case(implementation: str, passed: bool | None, name: str = "ragged") -> dict[str, Any]:
    status = "ok" if passed is not None else "skipped: not supported"
    row = {"implementation": implementation, "case": name, "length_q": 5}
    return row | {"passed": passed, "status": status}


def test_right_implementations_are_timed_in_the_same_rounds() -> None:
    tables = measure()
    result, samples = tables["result"], tables["samples"]
    assert (result["status"] == "ok").all()
    assert (result["samples"] == 3).all()
    assert result[NUMBERS].notna().all(axis=None)
    assert (result[NUMBERS] > 0).all(axis=None)
    assert (result["ci_low_ms"] <= result["median_ms"]).all()
    assert (result["median_ms"] <= result["ci_high_ms"]).all()
    assert result.query("implementation == 'naive'")["ratio_to_naive"].tolist() == [1, 1]
    counts = samples.groupby(["length", "round"])["implementation"].agg(set)
    assert len(counts) == 6
    assert all(names == set(IMPLEMENTATIONS) for names in counts)
    medians = samples.groupby(["length", "implementation"])["ms"].median()
    for row in result.to_dict("records"):
        assert row["median_ms"] == medians[row["length"], row["implementation"]]
        work = 4 * 2 * row["length"] ** 2 * 8
        assert row["tflops"] == pytest.approx(work / row["median_ms"] * 1e-9)
    promised = "dtype batch heads length head_dim causal block_size threads samples"
    assert {*promised.split(), *NUMBERS, "ratio_ci_low", "ratio_ci_high"} <= set(result.columns)


@pytest.mark.parametrize("name", ["ragged", "timed"])
def test_failed_implementation_gets_no_number_anywhere(name: str) -> None:
    tables = measure(verdicts(hard_case("tiled", False, name)))
    rows = tables["result"].set_index("implementation")
    assert (
        rows.loc["tiled", "status"].str.startswith("not timed: failed correctness in 1 of").all()
    )
    assert rows.loc["tiled", NUMBERS].isna().all(axis=None)
    assert (rows.loc["tiled", "samples"] == 0).all()
    assert "tiled" not in set(tables["samples"]["implementation"])
    assert (rows.drop(index="tiled")["status"] == "ok").all()


def test_failed_baseline_leaves_the_others_without_a_ratio() -> None:
    rows = measure(verdicts(hard_case("naive", False)))["result"].set_index("implementation")
    assert rows.loc["naive", "status"].str.startswith("not timed").all()
    assert rows.loc["tiled", "median_ms"].notna().all()
    assert rows.loc["tiled", ["ratio_to_naive", "ratio_ci_low"]].isna().all(axis=None)


def test_all_failed() -> None:
    tables = measure(verdicts(*(hard_case(name, False) for name in IMPLEMENTATIONS)))
    assert tables["result"]["status"].str.startswith("not timed").all()
    assert tables["samples"].empty


def test_skipped_hard_case_is_no_failure() -> None:
    tables = measure(verdicts(hard_case("sdpa", None)))
    assert (tables["result"]["status"] == "ok").all()


def test_shape_that_was_not_judged_is_not_timed() -> None:
    judged = verdicts()
    longer = (judged["implementation"] == "tiled") & (judged["length_q"] == 32)
    absent = measure(judged[~longer])["result"].query("implementation == 'tiled'")
    assert absent["status"].tolist() == [
        "ok",
        "not timed: this shape was not judged (not among the cases)",
    ]
    judged.loc[longer, "passed"] = pd.NA
    judged.loc[longer, "status"] = "skipped: its reference takes 3 TFLOP"
    skipped = measure(judged)["result"].query("implementation == 'tiled'")
    assert skipped["status"].tolist()[1] == (
        "not timed: this shape was not judged (skipped: its reference takes 3 TFLOP)"
    )


def test_verdict_on_another_block_size_does_not_count() -> None:
    judged = verdicts()
    judged.loc[judged["implementation"] == "tiled", "block_size"] = 64
    rows = measure(judged)["result"].query("implementation == 'tiled'")
    assert rows["status"].str.startswith("not timed: this shape was not judged").all()


def test_what_does_not_fit_is_skipped_and_later_lengths_are_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    huge = 1_000_000
    monkeypatch.setattr(judging, "available_bytes", lambda device: 10_000_000)
    tables = measure(verdicts(lengths=(16, huge, 32)), lengths=[16, huge, 32])
    result = tables["result"].set_index("length")
    assert result.index.unique().tolist() == [16, huge, 32]
    assert result.loc[huge, "status"].str.startswith("skipped: needs").all()
    assert result.loc[huge, NUMBERS].isna().all(axis=None)
    assert (result.loc[[16, 32], "status"] == "ok").all()
    assert result.loc[[16, 32], "median_ms"].notna().all()
    assert set(tables["samples"]["length"]) == {16, 32}


def test_what_takes_too_long_is_skipped_with_the_reason() -> None:
    found = measure(max_seconds=1e-9)["result"]
    assert (
        found["status"]
        .str.fullmatch(r"skipped: 3 rounds take over \d+ s, max_seconds is 1e-09")
        .all()
    )
    assert (found["samples"] == 0).all()


def test_unsupported_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiled, "unsupported", lambda *tensors, **call: "no such head size")
    rows = measure()["result"].set_index("implementation")
    assert (rows.loc["tiled", "status"] == "skipped: no such head size").all()
    assert rows.loc["tiled", "median_ms"].isna().all()
    assert rows.loc["naive", "median_ms"].notna().all()


def test_block_sweep_times_one_implementation_in_many_blocks() -> None:
    judged = [
        {**SHAPE, "implementation": "tiled", "case": "timed, block sweep", "length_q": 32}
        | {"block_size": size, "passed": True, "status": "ok"}
        for size in (8, 16, 32)
    ]
    sweep = {"implementation": "tiled", "length": 32, "block_sizes": [8, 32]}
    tables = measure(verdicts(*judged), block_sweep=sweep)
    rows = tables["result"].query("series == 'block sweep'")
    assert rows["block_size"].tolist() == [8, 32]
    assert set(rows["implementation"]) == {"tiled"}
    assert rows["ratio_to_naive"].isna().all()
    samples = tables["samples"].query("series == 'block sweep'")
    assert samples.groupby("block_size")["round"].nunique().to_dict() == {8: 3, 32: 3}
    assert len(tables["result"].query("series == 'lengths'")) == 2 * len(IMPLEMENTATIONS)


@pytest.mark.parametrize("threads", [1, None])
def test_real_thread_count_is_in_every_row(
    monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    def spying_call(self: Tiled, *tensors: torch.Tensor, **call: Any) -> torch.Tensor:
        in_use.add(torch.get_num_threads())
        return call_of_tiled(self, *tensors, **call)

    in_use: set[int] = set()
    call_of_tiled = Tiled.__call__
    monkeypatch.setattr(Tiled, "__call__", spying_call)
    tables = measure(threads=threads)
    expected = threads or usable_cores()
    assert in_use == {expected}
    assert set(tables["result"]["threads"]) == {expected}
    assert set(tables["samples"]["threads"]) == {expected}


def test_more_threads_than_cores_are_refused() -> None:
    with pytest.raises(StepError, match=r"cpu_timing\.threads = \d+: this process may use"):
        measure(threads=usable_cores() + 1)


def test_openmp_limit_below_the_threads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_timing, "usable_cores", lambda: 8)
    monkeypatch.setenv("OMP_THREAD_LIMIT", "2")
    with pytest.raises(StepError, match=r"cpu_timing\.threads = 8: OMP_THREAD_LIMIT is 2"):
        measure(threads=8)


def test_openmp_default_of_the_environment_does_not_count() -> None:
    """Snakemake exports OMP_NUM_THREADS for each rule, 1 by default."""
    program = (
        "import json, torch\n"
        "from tiled_attention.steps.cpu_timing import use_threads\n"
        "before = torch.get_num_threads()\n"
        "print(json.dumps([before, use_threads(None), torch.get_num_threads()]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(judging.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(found) == [1, usable_cores(), usable_cores()]
