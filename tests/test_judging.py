"""One implementation on one case: every status that a row can have."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tiled_attention import judging
from tiled_attention.cases import Case
from tiled_attention.implementations.naive import Naive
from tiled_attention.implementations.tiled import Tiled
from tiled_attention.judging import case_columns, judge, too_large

CASE = Case("any", length_q=40, length_kv=50)


@dataclass(frozen=True)
class Stub(Naive):
    """Naive attention, but for what a test replaces."""

    change: Callable[..., Any] = lambda output, *tensors: output
    reason: str | None = None
    peak: int | None = None

    def __call__(self, *tensors: Tensor, **call: Any) -> Any:
        return self.change(super().__call__(*tensors, **call), *tensors)

    def unsupported(self, *tensors: Tensor, **call: Any) -> str | None:
        return self.reason

    def peak_bytes(self, *tensors: Tensor, **call: Any) -> dict[str, int]:
        account = super().peak_bytes(*tensors, **call)
        return account if self.peak is None else {"all": self.peak}


def scribble(output: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    value[0, 0, 0, 0] += 1
    return output


def with_nan(output: Tensor, *tensors: Tensor) -> Tensor:
    return output.index_fill(2, torch.tensor([3]), float("nan"))


def fail(output: Tensor, *tensors: Tensor) -> Tensor:
    raise RuntimeError("no kernel image")


def test_right_output_passes() -> None:
    row = judge(Naive(), CASE)
    assert row["passed"] is True
    assert row["status"] == "ok"
    assert 0 <= row["max_abs_error"] <= row["tolerance"]


@pytest.mark.parametrize(
    "change", [with_nan, lambda output, *tensors: output + 1e-4], ids=["NaN", "wrong number"]
)
def test_wrong_output_fails_with_its_error(change: Callable[..., Tensor]) -> None:
    row = judge(Stub(change=change), CASE)
    assert row["passed"] is False
    assert row["status"] == "ok"
    assert not row["max_abs_error"] <= row["tolerance"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (fail, "failed: raised RuntimeError: no kernel image"),
        (lambda output, *tensors: output[:, :, 1:], "failed: returned (1, 2, 39, 64)"),
        (
            lambda output, *tensors: output.double(),
            "failed: returned (1, 2, 40, 64) torch.float64",
        ),
        (lambda output, *tensors: None, "failed: returned"),
        (scribble, "failed: changed its arguments"),
    ],
    ids=["error", "shape", "dtype", "nothing", "arguments"],
)
def test_outright_failures(change: Callable[..., Any], status: str) -> None:
    row = judge(Stub(change=change), CASE)
    assert row["passed"] is False
    assert row["status"].startswith(status)


def test_a_changed_mask_fails() -> None:
    @dataclass(frozen=True)
    class Overwrites(Naive):
        def __call__(self, *tensors: Tensor, mask: Tensor, **call: Any) -> Tensor:
            output = super().__call__(*tensors, mask=mask, **call)
            mask.logical_not_()
            return output

    row = judge(Overwrites(), replace(CASE, hidden="later rows"))
    assert row == {"passed": False, "status": "failed: changed its arguments"}


def test_unsupported_case_is_skipped_and_not_called() -> None:
    row = judge(Stub(change=fail, reason="no such head size"), CASE)
    assert row == {"passed": None, "status": "skipped: no such head size"}


def test_case_that_does_not_fit_is_skipped_and_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judging, "available_bytes", lambda device: 10**9)
    row = judge(Stub(change=fail, peak=2 * 10**9), CASE)
    assert row["passed"] is None
    assert row["status"] == "skipped: needs 2.0 GB, 1.0 GB are available"
    assert judge(Stub(peak=10**8), CASE)["passed"] is True


def test_arguments_count_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = 2 * 64 * 4 * (40 + 50 + 50)
    monkeypatch.setattr(judging, "available_bytes", lambda device: arguments + 999)
    assert too_large(Stub(peak=999), CASE) is None
    assert too_large(Stub(peak=1000), CASE) is not None


def test_work_limit() -> None:
    tflop = CASE.flop() / 1e12
    assert too_large(Naive(), CASE, max_tflop=1.01 * tflop) is None
    row = judge(Stub(change=fail), CASE, max_tflop=0.99 * tflop)
    assert row["passed"] is None
    assert "correctness.max_tflop" in row["status"]


@pytest.mark.parametrize("hidden", ["later rows", "first keys"])
@pytest.mark.parametrize("causal", [False, True])
def test_mask_and_causal_reach_the_implementation(hidden: str, causal: bool) -> None:
    case = replace(CASE, hidden=hidden, causal=causal)
    assert judge(Tiled(16), case)["passed"] is True

    def forgetful(output: Tensor, *tensors: Tensor) -> Tensor:
        return Naive()(*tensors)

    assert judge(Stub(change=forgetful), case)["passed"] is False


def test_columns_tell_the_problem_and_the_block_in_use() -> None:
    case = Case("grouped", "bfloat16", 3, 6, 2, 5, 9, 8, True, 11, block_size=16)
    assert case_columns(case, Tiled(32)) == {
        "case": "grouped",
        "dtype": "bfloat16",
        "batch": 3,
        "heads": 6,
        "heads_kv": 2,
        "length_q": 5,
        "length_kv": 9,
        "head_dim": 8,
        "causal": True,
        "block_size": 32,
        "seed": 11,
    }
    assert case_columns(case, Naive())["block_size"] is None
