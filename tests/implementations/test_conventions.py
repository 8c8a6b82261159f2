"""What the eager implementations share."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tiled_attention.implementations.conventions import (
    accumulator,
    apply_mask_,
    finite_or_zero,
    normalise,
    product,
    repeat_heads,
)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_products_are_accumulated_in_fp32(dtype: torch.dtype) -> None:
    """Integers up to 60 are exact in half precision; their sums here are not."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randint(-60, 61, (2, 3, 16, 300), generator=generator)
    right = torch.randint(-60, 61, (2, 3, 300, 16), generator=generator)
    found = product(left.to(dtype), right.to(dtype))
    assert found.dtype == torch.float32
    assert torch.equal(found, (left @ right).float())
    assert not torch.equal(found.to(dtype).float(), found)


def test_fp32_probabilities_are_not_rounded_for_half_precision_values() -> None:
    probabilities = torch.full((1, 1, 1, 3), 1 / 3)
    found = product(probabilities, torch.ones(1, 1, 3, 1, dtype=torch.bfloat16))
    assert found.item() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_accumulator_is_never_narrower_than_fp32(dtype: torch.dtype, wide: torch.dtype) -> None:
    assert accumulator(dtype) == wide


def test_heads_are_copied_only_where_they_are_shared() -> None:
    query, key, value = torch.randn(2, 6, 5, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 8)
    wide_key, wide_value = repeat_heads(query, key, value)
    for head in range(6):
        assert torch.equal(wide_key[:, head], key[:, head // 3])
        assert torch.equal(wide_value[:, head], value[:, head // 3])
    same_key, same_value = repeat_heads(query[:, :2], key, value)
    assert same_key is key
    assert same_value is value


@given(
    length_q=st.integers(1, 20),
    length_kv=st.integers(1, 20),
    causal=st.booleans(),
    kind=st.sampled_from(["none", "boolean", "addend"]),
    data=st.data(),
)
def test_a_block_is_masked_as_its_place_in_the_whole(
    length_q: int, length_kv: int, causal: bool, kind: str, data: st.DataObject
) -> None:
    lengths = length_q, length_kv
    scores = torch.randn(1, 2, *lengths, generator=torch.Generator().manual_seed(0))
    mask = None if kind == "none" else torch.randn(lengths)
    mask = mask > 0 if kind == "boolean" else mask
    start_q, start_kv = data.draw(st.integers(0, length_q)), data.draw(st.integers(0, length_kv))
    rows = range(start_q, data.draw(st.integers(start_q, length_q)))
    columns = range(start_kv, data.draw(st.integers(start_kv, length_kv)))
    part = (..., slice(rows.start, rows.stop), slice(columns.start, columns.stop))
    block = apply_mask_(scores[part].clone(), rows, columns, lengths, causal, mask)

    whole = scores if mask is None or kind == "boolean" else scores + mask
    hidden = torch.zeros(lengths, dtype=torch.bool) if kind != "boolean" else ~mask
    if causal:
        hidden = hidden | torch.ones(lengths).triu(length_kv - length_q + 1).bool()
    assert torch.equal(block, whole.masked_fill(hidden, -math.inf)[part])


def test_nothing_visible_gives_zero_and_no_nan() -> None:
    maximum = torch.tensor([-math.inf, -3.0, 0.0])
    assert finite_or_zero(maximum).tolist() == [0, -3, 0]
    output, normaliser = torch.tensor([[0.0], [6.0]]), torch.tensor([[0.0], [3.0]])
    assert normalise(output, normaliser).tolist() == [[0], [2]]
