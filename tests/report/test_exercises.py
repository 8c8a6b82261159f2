"""The answers follow the numbers."""

from typing import Any

import pandas as pd
import pytest

from tiled_attention.article import article
from tiled_attention.report import exercises
from tiled_attention.steps.byte_arithmetic import device_limits


def check_rows(high: float) -> dict[str, dict[str, pd.DataFrame]]:
    rows = [
        ("naive", 64, 0, 0.0),
        ("tiled", 64, 0, 3e-7),
        ("tiled", 32, 0, 3e-7),
        ("tiled", 32, 1, 2e-7),
        ("tiled", 32, 2, high),
    ]
    columns = ["implementation", "block_size", "seed", "max_abs_difference"]
    return {"correctness": {"result": pd.DataFrame(rows, columns=columns).assign(case="article")}}


@pytest.mark.parametrize(("high", "same"), [(4e-7, True), (4e-6, False)])
def test_another_seed(high: float, same: bool) -> None:
    answer = exercises.another_seed(check_rows(high), article())
    assert answer is not None
    assert (answer["seeds"], answer["low"], answer["high"]) == (2, 2e-7, high)
    assert answer["same_order"] is same


def test_another_seed_without_the_cases() -> None:
    tables = check_rows(4e-7)
    tables["correctness"]["result"] = tables["correctness"]["result"].query("block_size == 64")
    assert exercises.another_seed(tables, article()) is None


def test_outgrows_a100() -> None:
    devices = {"a100_40gb": {"name": "A100", "memory": 40}}
    limits = device_limits(devices, heads=[32, 64], batch=1, dtype="bfloat16")
    answer = exercises.outgrows_a100({"byte_arithmetic": {"devices": limits}}, article())
    assert answer is not None
    assert answer["found"] == {"decimal": 25001, "binary": 25906} == answer["article"]
    nothing = limits.query("heads == 64")
    assert exercises.outgrows_a100({"byte_arithmetic": {"devices": nothing}}, article()) is None


def crossing(kind: str, length: float, low: float, high: float) -> dict[str, Any]:
    return {
        "kind": kind,
        "predicted_length": length,
        "ci_low": low,
        "ci_high": high,
        "verdict": "not enough data: 1 lengths for 2 terms",
    }


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (crossing("crosses", 1600, 1500, 1700), "faster from S = 1,600 on [1,500, 1,700]"),
        (crossing("crosses", 9000, 4000, INF), "faster from S = 9,000 on [4,000, never]"),
        (crossing("crosses twice or more", 700, 600, 800), "cross again later"),
        (crossing("slower from here on", 700, 600, 800), "slower from S = 700 on"),
        (crossing("already faster", NAN, 0, 0), "at the shortest fitted length (in every refit)"),
        (crossing("already faster", NAN, 0, 700), "fitted length [below the shortest, 700]"),
        (crossing("never faster", NAN, 3000, INF), "never, as far as the model reaches [3,000,"),
        (crossing("no difference", NAN, NAN, NAN), "no difference"),
        (crossing("not identifiable", NAN, NAN, NAN), "no prediction (not enough data"),
    ],
)
def test_crossover_in_words(row: dict[str, Any], expected: str) -> None:
    assert expected in exercises.in_words(row)


@pytest.mark.parametrize(("worst", "told"), [(3.0, None), (36.0, 36.0), (NAN, None)])
def test_poor_fit_is_told(worst: float, told: float | None) -> None:
    assert exercises.poor_fit({"worst_residual_percent": worst}) == told


def test_crossover_without_a_fit() -> None:
    row = crossing("not identifiable", NAN, NAN, NAN) | {"implementation": "tiled"}
    (answer,) = exercises.cpu_crossover({"crossover": {"result": pd.DataFrame([row])}})
    assert answer["longer"] == []
    assert "not enough data" in answer["sentence"]


def test_nothing_but_the_baseline_has_no_crossover() -> None:
    assert exercises.cpu_crossover({"crossover": {"block_cost": pd.DataFrame()}}) == []
