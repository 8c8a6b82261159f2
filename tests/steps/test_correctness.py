"""Which cases an implementation is judged on, and what becomes of a wrong one."""

import logging
from typing import Any

import pytest

from tiled_attention.cases import hard_cases
from tiled_attention.implementations.naive import Naive
from tiled_attention.mutants import Mutant
from tiled_attention.steps import correctness
from tiled_attention.steps.correctness import all_cases

SECTION: dict[str, Any] = {
    "length": 128,
    "seeds": [0, 7],
    "block_sizes": [64, 32],
    "hard_case_dtypes": ["float32"],
    "timed": {"batch": 2, "heads": 4, "head_dim": 16, "dtype": "float32", "causal": False},
    "timed_lengths": [96, 160],
    "timed_sweep": {"implementation": "tiled", "length": 192, "block_sizes": [16, 64]},
    "max_tflop": 1.0,
}
OPTIONS = {
    "correctness": SECTION,
    "implementations": {
        "tiled": {"_target_": "tiled_attention.implementations.tiled.Tiled", "block_size": 64}
    },
}
NOT_RESCALED = Mutant(
    "output not rescaled",
    "the output keeps the old maximum's scale",
    "output = output * rescale + product(probabilities, value_block)",
    "output = output + product(probabilities, value_block)",
)


def test_article_check_comes_first_in_every_block_and_seed() -> None:
    article = [case for case in all_cases(SECTION, "tiled", True) if case.name == "article"]
    assert [(case.block_size, case.seed) for case in article] == [
        (64, 0), (64, 7), (32, 0), (32, 7),
    ]  # fmt: skip
    assert {(case.batch, case.heads, case.heads_kv, case.head_dim) for case in article} == {
        (2, 4, 4, 16)
    }
    assert {(case.length_q, case.length_kv) for case in article} == {(128, 128)}


def test_implementation_without_blocks_is_checked_once_a_seed() -> None:
    article = [case for case in all_cases(SECTION, "naive", False) if case.name == "article"]
    assert [(case.block_size, case.seed) for case in article] == [(None, 0), (None, 7)]


@pytest.mark.parametrize(("name", "swept"), [("tiled", [16, 64]), ("tiled_128", [])])
def test_every_timed_shape_is_judged(name: str, swept: list[int]) -> None:
    cases = list(all_cases(SECTION, name, True))
    timed = [case for case in cases if case.name == "timed"]
    assert [(case.length_q, case.length_kv) for case in timed] == [(96, 96), (160, 160)]
    assert {case.block_size for case in timed} == {None}  # the implementation's own
    sweep = [case for case in cases if case.name == "timed, block sweep"]
    assert [case.block_size for case in sweep] == swept
    assert all((case.length_q, case.heads, case.head_dim) == (192, 4, 16) for case in sweep)


def test_hard_cases_come_in_every_dtype_asked_for() -> None:
    dtypes = ["float32", "bfloat16"]
    cases = list(all_cases(SECTION | {"hard_case_dtypes": dtypes}, "tiled", True))
    assert set(hard_cases(dtypes)) <= set(cases)


def test_right_implementation_passes_every_case() -> None:
    result = correctness.measure(OPTIONS, {})["result"]
    assert len(result) == len(list(all_cases(SECTION, "tiled", True)))
    assert set(result["implementation"]) == {"tiled"}
    assert result["passed"].all()
    assert result.query("case == 'article'")["block_size"].tolist() == [64, 64, 32, 32]
    promised = """implementation case dtype batch heads heads_kv length_q length_kv head_dim causal
        block_size seed max_abs_error reference_max_abs_error tolerance passed"""
    assert set(promised.split()) <= set(result.columns)


def test_output_not_rescaled_fails_with_the_cases_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def build(options: dict[str, Any], block_size: int | None) -> Any:
        return NOT_RESCALED.build({"block_size": block_size or 64})

    monkeypatch.setattr(correctness, "build", build)
    result = correctness.measure(OPTIONS, {})["result"]
    failed = result[~result["passed"]]
    assert {"article", "timed", "ragged"} <= set(failed["case"])
    assert (failed["max_abs_error"] > failed["tolerance"]).all()
    one_block_is_enough = result.query("case == 'short'")
    assert one_block_is_enough["passed"].all()


def test_implementation_that_supports_nothing_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Unsupporting(Naive):
        def unsupported(self, *tensors: Any, **call: Any) -> str:
            return "no GPU"

    monkeypatch.setattr(correctness, "build", lambda options, block_size: Unsupporting())
    with caplog.at_level(logging.WARNING):
        result = correctness.measure(OPTIONS, {})["result"]
    assert result["passed"].isna().all()
    assert (result["status"] == "skipped: no GPU").all()
    assert "supports none of the cases" in caplog.text
