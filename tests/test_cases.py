"""The problems: from their seed alone, with the shapes and layouts that their names promise."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tiled_attention.cases import INPUTS, MASKS, Case, hard_cases

DTYPES = ("float32", "bfloat16", "float16")
GROUPED = Case("grouped", batch=3, heads=6, heads_kv=2, length_q=5, length_kv=9, head_dim=8)


def test_tensors_follow_from_the_seed_alone() -> None:
    case = Case("any", seed=3)
    torch.manual_seed(1)
    first = case.tensors()
    torch.manual_seed(2)
    assert all(map(torch.equal, first, case.tensors()))
    assert all(map(torch.equal, first, replace(case, name="other", causal=True).tensors()))
    other = replace(case, seed=4).tensors()
    assert not any(map(torch.equal, first, other))


def test_process_wide_seed_is_left_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    GROUPED.tensors()
    assert torch.equal(torch.rand(1), expected)


def test_query_key_and_value_are_unlike() -> None:
    query, key, value = Case("any").tensors()
    for left, right in ((query, key), (key, value), (query, value)):
        assert abs((left * right).mean().item()) < 0.1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("inputs", sorted(INPUTS))
def test_shapes_and_dtype(dtype: str, inputs: str) -> None:
    case = replace(GROUPED, dtype=dtype, inputs=inputs)
    shapes = [tuple(tensor.shape) for tensor in case.tensors()]
    assert shapes == [(3, 6, 5, 8), (3, 2, 9, 8), (3, 2, 9, 8)]
    assert {tensor.dtype for tensor in case.tensors()} == {getattr(torch, dtype)}
    without_data = case.without_data()
    assert [tuple(tensor.shape) for tensor in without_data] == shapes
    assert {tensor.dtype for tensor in without_data} == {getattr(torch, dtype)}
    assert {tensor.untyped_storage().nbytes() for tensor in without_data} == {
        case.head_dim * without_data[0].itemsize
    }


@pytest.mark.parametrize("inputs", ["permuted", "strided"])
def test_layouts_hold_the_normal_values(inputs: str) -> None:
    tensors = replace(GROUPED, inputs=inputs).tensors()
    assert all(map(torch.equal, tensors, GROUPED.tensors()))
    assert not any(tensor.is_contiguous() for tensor in tensors)
    if inputs == "strided":
        assert {tensor.stride(-1) for tensor in tensors} == {2}
    else:
        assert all(tensor.stride(1) < tensor.stride(2) for tensor in tensors)


def test_expanded_key_is_one_key_with_stride_0() -> None:
    key = replace(GROUPED, inputs="expanded key").tensors()[1]
    assert key.stride(2) == 0
    assert torch.equal(key, GROUPED.tensors()[1][:, :, :1].expand_as(key))


@pytest.mark.parametrize("dtype", DTYPES)
def test_very_negative_score_is_exact(dtype: str) -> None:
    case = Case("any", dtype=dtype, inputs="very negative score", head_dim=128)
    query, key, value = case.tensors()
    scores = query.double() @ key.double().mT
    assert torch.equal(scores, torch.full_like(scores, -524288))
    assert torch.equal(value, torch.ones_like(value))


def test_magnitudes() -> None:
    normal = GROUPED.tensors()
    for name, factors in (("five times larger", (5, 5, 5)), ("logits times 1e4", (100, 100, 1))):
        found = replace(GROUPED, inputs=name).tensors()
        for tensor, usual, factor in zip(found, normal, factors, strict=True):
            torch.testing.assert_close(tensor, factor * usual)


def test_masks_hide_what_they_say() -> None:
    case = Case("any", length_q=8, length_kv=6)
    later_rows = replace(case, hidden="later rows").mask()
    first_keys = replace(case, hidden="first keys").mask()
    assert case.mask() is None
    assert later_rows[:4].all()
    assert not later_rows[4:].any()
    assert first_keys[:4].all()
    assert first_keys[4:].tolist() == [[False] * 3 + [True] * 3] * 4
    for hidden, low in (
        ("later rows, addend", -math.inf),
        ("later rows, finite addend", torch.finfo(torch.float32).min),
    ):
        addend = replace(case, hidden=hidden).mask()
        assert torch.equal(addend == low, ~later_rows)
        assert (addend[later_rows] == 0).all()


@given(length_q=st.integers(0, 40), length_kv=st.integers(0, 40), causal=st.booleans())
def test_work_is_counted_for_visible_pairs_only(
    length_q: int, length_kv: int, causal: bool
) -> None:
    case = replace(GROUPED, length_q=length_q, length_kv=length_kv, causal=causal)
    visible = torch.ones(length_q, length_kv)
    pairs = int((visible.tril(length_kv - length_q) if causal else visible).sum())
    assert case.flop() == 2 * 2 * 3 * 6 * 8 * pairs  # two products, multiply and add


def test_work_of_a_causal_square() -> None:
    case = Case("any", batch=2, heads=4, length_q=1024, length_kv=1024, head_dim=64)
    assert case.flop() == 4 * 2 * 4 * 1024**2 * 64
    assert replace(case, causal=True).flop() == case.flop() * 1025 // 2048


def test_hard_cases_are_distinct() -> None:
    cases = list(hard_cases(DTYPES))
    assert len(cases) == len(set(cases))
    assert {case.dtype for case in cases} == set(DTYPES)
    assert all(case.heads % case.heads_kv == 0 for case in cases)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hard_cases_hold_every_known_kind_of_fault(dtype: str) -> None:
    cases = list(hard_cases([dtype]))
    masks = set(MASKS) - ({"later rows, finite addend"} if dtype == "float16" else set())
    assert {case.hidden for case in cases} == masks
    assert {case.inputs for case in cases} == set(INPUTS)
    causal = {(case.length_q, case.length_kv) for case in cases if case.causal}
    assert {(2, 5), (5, 2), (1, 8)} <= causal
    assert any(case.causal and case.hidden != "nothing" for case in cases)
    block = 16
    ragged = {case.length_q for case in cases if case.block_size == block}
    assert {block - 1, block, block + 1, 1, 137} <= ragged
    assert {8, 16, 32, 40, 64, 80, 96, 128, 256} <= {case.head_dim for case in cases}
    assert {(24, 12), (5, 1)} <= {(case.heads, case.heads_kv) for case in cases}
    assert any(
        (case.batch, case.heads, case.length_q, case.length_kv) == (4, 32, 1, 20) for case in cases
    )
    for empty in ({"batch": 0}, {"length_q": 0}, {"length_kv": 0}):
        assert any(empty.items() <= vars(case).items() for case in cases)


def test_hard_cases_need_several_blocks_of_queries_under_every_kind_of_mask() -> None:
    """Blocks of queries are at most 256 rows in config/implementation/."""
    long = [case for case in hard_cases(["float32"]) if case.length_q > 256]
    assert any(case.causal for case in long)
    assert any(case.hidden != "nothing" for case in long)
