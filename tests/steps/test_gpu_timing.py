"""What a GPU step does without a GPU: an interpreted run never holds a number."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tiled_attention import gpu_device
from tiled_attention.errors import StepError
from tiled_attention.gpu_shapes import timed_cases
from tiled_attention.steps import gpu_correctness, gpu_timing

PACKAGE = "tiled_attention.implementations"
IMPLEMENTATIONS = {
    "naive": {"_target_": f"{PACKAGE}.naive.Naive"},
    "tiled": {"_target_": f"{PACKAGE}.tiled.Tiled", "block_size": 16},
    "sdpa_flash": {"_target_": f"{PACKAGE}.gpu_sdpa.GpuSdpa", "backend": "flash"},
}
GRID = {"lengths": [16, 32], "tokens": 32, "head_dims": [8, 16], "hidden": 32,
        "causal": [False, True], "dtype": "float32"}  # fmt: skip
PROBLEM = {"batch": 1, "heads": 2, "head_dim": 8, "dtype": "float32", "causal": False}
SAMPLING = {"min_rounds": 3, "max_rounds": 3, "seconds": 0.1, "confidence": 0.95, "resamples": 100}
TIMING = {"grid": GRID, "problem": PROBLEM, "problem_lengths": [24], "matrix_size": 4, "seed": 0,
          "sampling": SAMPLING}  # fmt: skip
GATE = {"hard_case_dtypes": ["float32"], "grid": GRID, "problem": PROBLEM,
        "problem_lengths": [24], "max_tflop": 1.0}  # fmt: skip


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("TRITON_INTERPRET", "0")  # restored afterwards, whatever a step sets


def judged() -> pd.DataFrame:
    parts = []
    for name, chosen in IMPLEMENTATIONS.items():
        options = {"gpu_correctness": GATE, "interpreted": True, "implementations": {name: chosen}}
        parts.append(gpu_correctness.measure(options, {})["result"])
    return pd.concat(parts, ignore_index=True)


def test_equal_work_at_every_shape_of_the_grid() -> None:
    cases = list(timed_cases(TIMING))
    grid = [case for case in cases if case.name == "timed"]
    assert len(grid) == 8
    assert {case.batch * case.length_q for case in grid} == {32}
    assert {case.heads * case.head_dim for case in grid} == {32}
    (article,) = [case for case in cases if case.name != "timed"]
    assert (article.heads, article.length_q, article.dtype) == (2, 24, "float32")


def test_an_interpreted_pass_says_so_and_is_never_timed(no_gpu: None) -> None:
    verdicts = judged()
    assert set(verdicts["ran_on"]) == {gpu_device.INTERPRETER}
    own = verdicts.groupby("implementation")["passed"]
    assert own.apply(lambda passed: passed.eq(True).any()).to_dict() == {
        "naive": True, "tiled": True, "sdpa_flash": False,
    }  # fmt: skip
    options = {"gpu_timing": TIMING, "interpreted": True, "implementations": IMPLEMENTATIONS}
    tables = gpu_timing.measure(options, {"gpu_correctness": {"result": verdicts}})
    assert set(tables) == {"result"}
    result = tables["result"]
    assert len(result) == 9 * len(IMPLEMENTATIONS)
    assert result[list(gpu_timing.NUMBERS)].isna().all(axis=None)
    status = result.groupby("implementation")["status"].agg(set)
    assert status["tiled"] == status["naive"] == {gpu_timing.INTERPRETED}
    assert all(it.startswith("skipped: ") for it in status["sdpa_flash"])


def test_what_failed_under_the_interpreter_is_named_as_failed(no_gpu: None) -> None:
    verdicts = judged()
    verdicts.loc[verdicts["implementation"].eq("tiled").idxmax(), "passed"] = False
    options = {"gpu_timing": TIMING, "interpreted": True, "implementations": IMPLEMENTATIONS}
    result = gpu_timing.measure(options, {"gpu_correctness": {"result": verdicts}})["result"]
    tiled = result[result["implementation"] == "tiled"]
    assert tiled["status"].str.startswith("not timed: failed correctness in 1 of").all()


@pytest.mark.parametrize("step", [gpu_correctness, gpu_timing])
def test_without_a_gpu_a_step_ends_in_one_line(no_gpu: None, step: Any) -> None:
    options = {"gpu_timing": TIMING, "gpu_correctness": GATE}
    implementations = {"naive": IMPLEMENTATIONS["naive"]}
    with pytest.raises(StepError, match="needs a CUDA device"):
        step.measure(
            options | {"implementations": implementations},
            {"gpu_correctness": {"result": pd.DataFrame()}},
        )


def test_share_of_the_matrix_rate_is_taken_round_by_round() -> None:
    """The product takes 1 and 2 ms in turns, the implementation always half as long."""
    rounds = range(4)
    product = [1.0, 2.0, 1.0, 2.0]
    raw = pd.DataFrame(
        [{"round": n, "implementation": gpu_timing.PRODUCT, "ms": product[n]} for n in rounds]
        + [{"round": n, "implementation": "a", "ms": product[n] / 2} for n in rounds]
    )
    work = 2 * TIMING["matrix_size"] ** 3
    row = {"implementation": "a", "status": "ok", "median_ms": 0.75, "tflops": work / 0.75 / 1e9}
    shares = gpu_timing.device_columns(row, raw, TIMING)
    assert shares["matrix_share"] == pytest.approx(2)
    assert shares["matrix_share_low"] == pytest.approx(shares["matrix_share_high"])
    rates = gpu_timing.rate_columns(raw, TIMING)
    assert rates["matrix_tflops"] == pytest.approx(np.median([work / ms / 1e9 for ms in product]))
    assert gpu_timing.device_columns({"status": "skipped: x"}, raw, TIMING) == {}
