"""The run's last word: all right, or an error that names what is not."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from tiled_attention.errors import StepError
from tiled_attention.steps import verdict

Row = dict[str, Any]


def case(implementation: str, name: str, passed: bool | None, **changed: Any) -> Row:
    status = "skipped: not supported" if passed is None else "ok"
    row = {
        "implementation": implementation,
        "case": name,
        "dtype": "float32",
        "length_q": 64,
        "length_kv": 64,
        "max_abs_error": 1e-7 if passed else 1e-3,
        "tolerance": 1e-6,
        "passed": passed,
        "status": status,
    }
    return row | changed


def mutant(name: str, passed: bool, dtype: str = "float32") -> Row:
    return {"mutant": name, "dtype": dtype, "passed": passed}


RIGHT = [case("naive", "a", True), case("tiled", "a", True), case("tiled", "b", None)]
REJECTED = [mutant("wrong mask", True), mutant("wrong mask", False)]


def measure(cases: list[Row], mutants: list[Row], on_gpu: Sequence[Row] = ()) -> pd.DataFrame:
    found = {"correctness": cases, "gate_sensitivity": mutants}
    found |= {"gpu_correctness": list(on_gpu)} if on_gpu else {}  # none without a GPU
    tables = {
        step: {"result": pd.DataFrame(rows).astype({"passed": "boolean"})}
        for step, rows in found.items()
    }
    return verdict.measure({}, tables)["result"]


def complaint(cases: list[Row], mutants: list[Row]) -> str:
    with pytest.raises(StepError) as caught:
        measure(cases, mutants)
    return str(caught.value)


def test_all_right() -> None:
    rows = measure(RIGHT, REJECTED).set_index("implementation")
    assert set(rows.pop("step")) == {"correctness"}
    assert rows.loc["naive"].to_dict() == {"cases": 1, "passed": 1, "failed": 0, "skipped": 0}
    assert rows.loc["tiled"].to_dict() == {"cases": 2, "passed": 1, "failed": 0, "skipped": 1}


def test_failed_case_is_named_with_its_error() -> None:
    failed = [
        case("tiled", "slightly wrong", False, max_abs_error=2e-6),
        case("tiled", "very wrong", False, max_abs_error=0.5, dtype="bfloat16", length_kv=137),
    ]
    found = complaint([*RIGHT, *failed], REJECTED)
    assert "tiled fails 2 of 4 cases" in found
    assert "'very wrong' (bfloat16, 64 x 137): error 0.5, tolerance 1e-06" in found
    assert "naive" not in found
    assert "\n" not in found


def test_nan_is_worse_than_any_number() -> None:
    failed = [
        case("tiled", "wrong", False, max_abs_error=1e9),
        case("tiled", "not a number", False, max_abs_error=float("nan")),
    ]
    assert "'not a number'" in complaint([*RIGHT, *failed], REJECTED)


def test_outright_failure_is_named_first() -> None:
    failed = [
        case("tiled", "wrong", False),
        case("tiled", "crash", False, status="failed: raised RuntimeError: no kernel image"),
    ]
    found = complaint([*RIGHT, *failed], REJECTED)
    assert "'crash' (float32): failed: raised RuntimeError: no kernel image" in found


def test_only_outright_failures() -> None:
    """Without any error or tolerance at all, as when every case crashes."""
    crash = case("tiled", "crash", False, status="failed: raised ValueError: no")
    del crash["max_abs_error"], crash["tolerance"]
    found = complaint([crash], REJECTED)
    assert "tiled fails 1 of 1 cases" in found
    assert "'crash'" in found


def test_every_wrong_implementation_is_named() -> None:
    found = complaint([case("naive", "a", False), case("tiled", "b", False)], REJECTED)
    assert "naive fails" in found
    assert "tiled fails" in found


def test_implementation_that_passes_nothing_is_no_success() -> None:
    skipped = [case("fused", "a", None), case("fused", "b", None)]
    found = complaint([*RIGHT, *skipped], REJECTED)
    assert "fused passes no case: all 2 are skipped" in found


def test_mutant_that_slips_through_is_named_with_its_dtype() -> None:
    slipped = [mutant("wrong mask", False), mutant("wrong mask", True, "bfloat16")]
    found = complaint(RIGHT, slipped)
    assert "the gate does not reject the mutant 'wrong mask' in bfloat16" in found
    assert "float32" not in found


def test_what_fails_on_the_gpu_only_is_an_error_too() -> None:
    with pytest.raises(StepError, match=r"^gpu_correctness: tiled fails 1 of 1 cases"):
        measure(RIGHT, REJECTED, [case("naive", "a", True), case("tiled", "a", False)])


def test_a_package_that_is_not_installed_is_no_error() -> None:
    rows = measure(RIGHT, REJECTED, [case("naive", "a", True), case("optional", "a", None)])
    assert rows["step"].tolist() == ["correctness"] * 2 + ["gpu_correctness"] * 2
    assert rows.set_index("implementation").loc["optional", "skipped"] == 1
