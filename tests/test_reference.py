"""The specification itself, against sums written out by hand."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from tiled_attention import reference
from tiled_attention.cases import MASKS, Case
from tiled_attention.reference import attention, full_precision

EXACTLY = {"scale": None, "mask": None, "compute": torch.float64}


def by_hand(
    query: Tensor, key: Tensor, value: Tensor, causal: bool, mask: Tensor | None
) -> Tensor:
    """Softmax attention as sums over visible keys, one output row at a time."""
    batch, heads, length_q, head_dim = query.shape
    length_kv, group = key.shape[2], heads // key.shape[1]
    output = torch.zeros(query.shape, dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(length_q):
                weights = []
                for j in range(length_kv):
                    score = math.fsum((query[b, h, i] * key[b, h // group, j]).tolist())
                    score /= math.sqrt(head_dim)
                    hidden = causal and j > i + length_kv - length_q
                    if mask is not None and mask.dtype == torch.bool:
                        hidden = hidden or not mask[i, j]
                    elif mask is not None:
                        score += mask[i, j].item()
                    weights.append(0.0 if hidden else math.exp(score))
                for j, weight in enumerate(weights):
                    if weight:
                        output[b, h, i] += weight / math.fsum(weights) * value[b, h // group, j]
    return output


@pytest.mark.parametrize("hidden", [name for name in MASKS if "finite" not in name])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length_q", "length_kv"), [(6, 6), (3, 7), (7, 3)])
def test_equals_sums_by_hand(length_q: int, length_kv: int, causal: bool, hidden: str) -> None:
    case = Case(
        "small", heads=4, length_q=length_q, length_kv=length_kv, head_dim=8, hidden=hidden
    )
    query, key, value = (tensor.double() for tensor in case.tensors())
    exact = attention(
        query, key, value, causal=causal, scale=None, mask=case.mask(), compute=torch.float64
    )
    torch.testing.assert_close(
        exact, by_hand(query, key, value, causal, case.mask()), rtol=0, atol=1e-14
    )


@pytest.mark.parametrize(("length_q", "length_kv"), [(1, 20), (37, 50), (50, 37)])
def test_rows_taken_a_few_at_a_time_change_nothing(
    monkeypatch: pytest.MonkeyPatch, length_q: int, length_kv: int
) -> None:
    case = Case("any", length_q=length_q, length_kv=length_kv, hidden="first keys", causal=True)
    call = {"causal": True, "scale": None, "mask": case.mask(), "compute": torch.float64}
    whole = attention(*case.tensors(), **call)
    monkeypatch.setattr(reference, "SCORES_AT_ONCE", {"cpu": 7 * case.heads * length_kv})
    assert torch.equal(attention(*case.tensors(), **call), whole) or torch.allclose(
        attention(*case.tensors(), **call), whole, rtol=0, atol=1e-15
    )


def test_storage_rounds_the_output_once() -> None:
    tensors = Case("any", dtype="bfloat16").tensors()
    call = {"causal": False, "scale": None, "mask": None, "compute": torch.float32}
    wide = attention(*tensors, **call)
    assert wide.dtype == torch.float32
    stored = attention(*tensors, **call, storage=torch.bfloat16)
    assert stored.dtype == torch.float32
    assert torch.equal(stored, wide.bfloat16().float())
    assert not torch.equal(stored, wide)


@pytest.mark.parametrize(
    "shape", [{"length_kv": 0}, {"length_q": 0}, {"batch": 0}, {"length_q": 0, "length_kv": 0}]
)
@pytest.mark.parametrize("causal", [False, True])
def test_empty_shapes(shape: dict[str, int], causal: bool) -> None:
    query, key, value = Case("any", **shape).tensors()
    output = attention(query, key, value, causal=causal, **EXACTLY)
    assert torch.equal(output, torch.zeros_like(query, dtype=torch.float64))


def test_precision_is_full_inside_and_restored_after_an_error(
    matmul_precision: Callable[[str], None],
) -> None:
    def fail_in_full_precision() -> None:
        with full_precision():
            inside.append(torch.get_float32_matmul_precision())
            raise ZeroDivisionError

    inside: list[str] = []
    matmul_precision("medium")
    with pytest.raises(ZeroDivisionError):
        fail_in_full_precision()
    assert inside == ["highest"]
    assert torch.get_float32_matmul_precision() == "medium"
