"""Laws of softmax attention, over drawn shapes, blocks, heads and masks."""

from collections.abc import Callable
from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tiled_attention.cases import Case
from tiled_attention.gate import truth

Attend = Callable[..., Tensor]

HEADS = st.sampled_from([(1, 1), (2, 2), (4, 2), (6, 2), (3, 1)])
LENGTHS = st.integers(1, 80)
BLOCKS = st.integers(1, 90)
ROUNDING = 2e-5  # of values of order 1, in FP32, over sums of at most 80 terms


@st.composite
def problems(draw: st.DrawFn) -> Case:
    heads, heads_kv = draw(HEADS)
    return Case(
        "drawn",
        batch=draw(st.integers(1, 2)),
        heads=heads,
        heads_kv=heads_kv,
        length_q=draw(LENGTHS),
        length_kv=draw(LENGTHS),
        head_dim=draw(st.sampled_from([8, 16, 32, 40])),
        seed=draw(st.integers(0, 2**20)),
    )


def assert_equal(found: Tensor, expected: Tensor) -> None:
    """Equal but for rounding."""
    torch.testing.assert_close(found, expected, rtol=0, atol=ROUNDING)


@given(case=problems(), block_size=BLOCKS, causal=st.booleans())
def test_equals_naive_attention_as_far_as_the_gate_asks(
    attend: Attend, case: Case, block_size: int, causal: bool
) -> None:
    tensors = case.tensors()
    output = attend(*tensors, causal=causal, block_size=block_size)
    judgement = truth(*tensors, causal=causal).judge(output)
    assert judgement.passed, judgement


@given(case=problems(), block_size=BLOCKS, causal=st.booleans(), visible=st.floats(0, 1))
def test_equals_naive_attention_under_a_random_mask(
    attend: Attend, case: Case, block_size: int, causal: bool, visible: float
) -> None:
    tensors = case.tensors()
    generator = torch.Generator().manual_seed(case.seed)
    mask = torch.rand(case.length_q, case.length_kv, generator=generator) < visible
    output = attend(*tensors, causal=causal, mask=mask, block_size=block_size)
    judgement = truth(*tensors, causal=causal, mask=mask).judge(output)
    assert judgement.passed, judgement
    blind = ~(mask.tril(case.length_kv - case.length_q) if causal else mask).any(dim=1)
    assert (output[:, :, blind] == 0).all()


@given(case=problems(), first=BLOCKS, second=BLOCKS)
def test_block_size_does_not_matter(attend: Attend, case: Case, first: int, second: int) -> None:
    tensors = case.tensors()
    assert_equal(attend(*tensors, block_size=first), attend(*tensors, block_size=second))


@given(case=problems(), block_size=BLOCKS)
def test_order_of_the_keys_does_not_matter(attend: Attend, case: Case, block_size: int) -> None:
    query, key, value = case.tensors()
    order = torch.randperm(case.length_kv, generator=torch.Generator().manual_seed(case.seed))
    shuffled = attend(query, key[:, :, order], value[:, :, order], block_size=block_size)
    assert_equal(shuffled, attend(query, key, value, block_size=block_size))


@given(case=problems(), block_size=BLOCKS, constant=st.floats(-30, 30), causal=st.booleans())
def test_constant_added_to_all_scores_of_a_row_does_not_matter(
    attend: Attend, case: Case, block_size: int, constant: float, causal: bool
) -> None:
    tensors = case.tensors()
    generator = torch.Generator().manual_seed(case.seed)
    mask = constant * torch.rand(case.length_q, 1, generator=generator)
    shifted = attend(*tensors, causal=causal, block_size=block_size, mask=mask)
    assert_equal(shifted, attend(*tensors, causal=causal, block_size=block_size))


@given(case=problems(), block_size=BLOCKS, size=st.floats(0, 1000))
def test_output_lies_between_the_smallest_and_the_largest_value(
    attend: Attend, case: Case, block_size: int, size: float
) -> None:
    query, key, value = replace(case, heads_kv=case.heads).tensors()
    output = attend(size * query, key, value, block_size=block_size)
    assert (output <= value.amax(dim=2, keepdim=True) + ROUNDING).all()
    assert (output >= value.amin(dim=2, keepdim=True) - ROUNDING).all()


@given(case=problems(), block_size=BLOCKS, power=st.integers(-4, 4))
def test_scale_multiplies_the_scores(
    attend: Attend, case: Case, block_size: int, power: int
) -> None:
    query, key, value = case.tensors()
    factor = 2.0**power
    scaled = attend(query, key, value, scale=0.25 * factor, block_size=block_size)
    assert_equal(scaled, attend(factor * query, key, value, scale=0.25, block_size=block_size))


@given(case=problems(), block_size=BLOCKS, causal=st.booleans())
def test_output_is_linear_in_the_values(
    attend: Attend, case: Case, block_size: int, causal: bool
) -> None:
    query, key, value = case.tensors()
    other = replace(case, seed=case.seed + 1).tensors()[2]

    def output(values: Tensor) -> Tensor:
        return attend(query, key, values, causal=causal, block_size=block_size)

    assert_equal(output(value - 2 * other), output(value) - 2 * output(other))


@given(case=problems(), block_size=BLOCKS, data=st.data())
def test_causal_output_does_not_depend_on_later_keys(
    attend: Attend, case: Case, block_size: int, data: st.DataObject
) -> None:
    query, key, value = case.tensors()
    row = data.draw(st.integers(0, case.length_q - 1), label="row")
    later = max(0, row + 1 + case.length_kv - case.length_q)
    before = attend(query, key, value, causal=True, block_size=block_size)
    key[:, :, later:], value[:, :, later:] = 100.0, -100.0
    after = attend(query, key, value, causal=True, block_size=block_size)
    assert_equal(after[:, :, : row + 1], before[:, :, : row + 1])
