"""The measured peak, on calls whose peak is known by construction."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor

from tiled_attention import judging
from tiled_attention.cases import Case
from tiled_attention.implementations.naive import Naive
from tiled_attention.steps import peak_memory
from tiled_attention.steps.peak_memory import peak_bytes

MIB = 2**20
CASE = Case("any", length_q=64, length_kv=64)
OUTPUT = 2 * 64 * 64 * 4


@dataclass(frozen=True)
class Allocating(Naive):
    """Does nothing but what a test asks for."""

    work: Callable[[], Any]

    def __call__(self, query: Tensor, *others: Tensor, **call: Any) -> Tensor:
        self.work()
        return torch.empty_like(query)


def held(mebibytes: int) -> Tensor:
    return torch.zeros(mebibytes * MIB, dtype=torch.uint8)


def one_after_another() -> None:
    for size in (3, 5, 4):
        held(size)


def all_at_once() -> None:
    _ = [held(size) for size in (3, 5, 4)]


def overlapping() -> None:
    first = held(3)
    second = held(5)
    del first
    third = held(4)
    del second, third


@pytest.mark.parametrize(
    ("work", "peak"),
    [(one_after_another, 5 * MIB), (all_at_once, 12 * MIB), (overlapping, 9 * MIB)],
)
def test_peak_is_of_what_lives_at_once(work: Callable[[], None], peak: int) -> None:
    assert peak_bytes(Allocating(work), CASE) == peak


def test_output_counts_and_arguments_do_not() -> None:
    assert peak_bytes(Allocating(lambda: None), CASE) == OUTPUT


def test_first_call_is_left_out() -> None:
    pending = [lambda: held(50)]
    lazy = Allocating(lambda: pending.pop()() if pending else None)
    assert peak_bytes(lazy, CASE) == OUTPUT


def test_buffers_of_all_threads_are_seen(set_threads: Callable[[int], None]) -> None:
    def in_threads() -> None:
        torch.nn.functional.scaled_dot_product_attention(*tensors)

    tensors = Case("any", heads=8, heads_kv=8).tensors()
    set_threads(1)
    one = peak_bytes(Allocating(in_threads), CASE)
    set_threads(2)
    assert peak_bytes(Allocating(in_threads), CASE) > one


def measured(implementation: str, **changed: Any) -> dict[str, pd.DataFrame]:
    problem = {"batch": 2, "heads": 4, "head_dim": 64, "dtype": "float32", "causal": False}
    options = {
        "implementations": {
            implementation.lower(): {
                "_target_": f"tiled_attention.implementations.{implementation.lower()}."
                + implementation
            }
        },
        "peak_memory": {"problem": problem | changed, "lengths": [128, 256]},
    }
    return peak_memory.measure(options, {})


def test_naive_holds_two_score_matrices_and_the_output() -> None:
    tables = measured("Naive")
    for row in tables["result"].to_dict("records"):
        scores = 2 * 4 * row["length"] ** 2 * 4
        assert row["score_matrix_bytes"] == scores
        assert row["output_bytes"] == 2 * 4 * row["length"] * 64 * 4
        assert row["measured_bytes"] == row["account_bytes"]
        assert row["measured_bytes"] == 2 * scores + row["output_bytes"]
        assert row["status"] == "ok"
    assert tables["result"]["length"].tolist() == [128, 256]


@pytest.mark.parametrize("implementation", ["Naive", "Tiled"])
def test_account_adds_up(implementation: str) -> None:
    tables = measured(implementation)
    assert set(tables["result"]["implementation"]) == {implementation.lower()}
    assert set(tables["account"]["implementation"]) == {implementation.lower()}
    accounts = tables["account"].groupby("length")["bytes"].sum()
    assert accounts.tolist() == tables["result"]["account_bytes"].tolist()


def test_what_is_not_supported_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Naive, "unsupported", lambda *tensors, **call: "no such shape")
    monkeypatch.setattr(peak_memory, "peak_bytes", None)
    rows = measured("Naive")["result"]
    assert set(rows["status"]) == {"skipped: no such shape"}
    assert rows["measured_bytes"].isna().all()


def test_what_does_not_fit_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "available_bytes", lambda device: 2_500_000)
    short, long = measured("Naive")["result"].to_dict("records")
    assert short["status"] == "ok"
    assert long["status"].startswith("skipped: needs 0.0 GB")
    assert pd.isna(long["measured_bytes"])
    assert long["account_bytes"] > 2_500_000
