"""What `implementations.Attention` promises, held by every file of config/implementation/."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from tiled_attention.build import build
from tiled_attention.cases import Case, hard_cases
from tiled_attention.gate import truth
from tiled_attention.judging import judge
from tiled_attention.machine import usable_cores

DTYPES = ("float32", "bfloat16", "float16")
Attend = Callable[..., Tensor]


def assert_right(output: Tensor, *tensors: Tensor, **call: Any) -> None:
    judgement = truth(*tensors, **call).judge(output)
    assert judgement.passed, judgement


def counting_values(case: Case, first: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return a query of 0, so that all weights are equal, and the value `first + j` at key j."""
    query, key, value = case.tensors()
    numbers = torch.arange(first, first + case.length_kv, dtype=value.dtype)
    return torch.zeros_like(query), key, numbers[:, None].expand_as(value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_hard_case(options: dict[str, Any], dtype: str) -> None:
    wrong = {}
    for case in hard_cases([dtype]):
        row = judge(build(options, case.block_size), case)
        if row["passed"] is not True and not row["status"].startswith("skipped"):
            wrong[case] = row
    assert not wrong


@pytest.mark.parametrize("dtype", DTYPES)
def test_fully_masked_rows_are_zero(attend: Attend, dtype: str) -> None:
    tensors = Case("any", dtype=dtype, length_q=8, length_kv=8).tensors()
    mask = torch.ones(8, 8, dtype=torch.bool)
    mask[4:] = False
    output = attend(*tensors, mask=mask, block_size=4)
    assert torch.equal(output[:, :, 4:], torch.zeros_like(output[:, :, 4:]))
    assert_right(output, *tensors, mask=mask)


@pytest.mark.parametrize("hidden", [False, -math.inf])
def test_rows_masked_in_the_first_block_only(attend: Attend, hidden: float) -> None:
    query, key, value = Case("any").tensors()
    mask = torch.ones(64, 64, dtype=torch.bool)
    mask[32:, :16] = False
    if hidden is not False:
        mask = torch.zeros(64, 64).masked_fill(~mask, hidden)
    output = attend(query, key, value, mask=mask, block_size=16)
    assert_right(output[:, :, 32:], query[:, :, 32:], key[:, :, 16:], value[:, :, 16:])
    assert_right(output[:, :, :32], query[:, :, :32], key, value)


@pytest.mark.parametrize(
    ("length_q", "length_kv", "first", "expected"),
    [
        (2, 5, 0, [1.5, 2.0]),
        (5, 2, 1, [0, 0, 0, 1, 1.5]),
        (1, 8, 0, [3.5]),
        (3, 3, 0, [0, 0.5, 1]),
    ],
)
def test_causal_is_aligned_to_the_bottom_right(
    attend: Attend, length_q: int, length_kv: int, first: int, expected: list[float]
) -> None:
    tensors = counting_values(Case("any", length_q=length_q, length_kv=length_kv), first)
    output = attend(*tensors, causal=True, block_size=2)
    wanted = torch.tensor(expected)[:, None].expand_as(output)
    torch.testing.assert_close(output, wanted, rtol=0, atol=1e-6)
    assert torch.equal(output[wanted == 0], wanted[wanted == 0])


def test_padding_keys_have_no_weight(attend: Attend) -> None:
    query, key, value = Case("any", length_q=5, length_kv=5).tensors()
    output = attend(torch.zeros_like(query), key, torch.ones_like(value), block_size=16)
    torch.testing.assert_close(output, torch.ones_like(output), rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_key_returns_its_value_exactly(attend: Attend, dtype: str) -> None:
    query, key, value = Case("any", dtype=dtype, length_q=1, length_kv=1).tensors()
    assert torch.equal(attend(query, key, value), value)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "empty", [{"length_kv": 0}, {"length_q": 0}, {"batch": 0}, {"length_q": 0, "length_kv": 0}]
)
def test_empty_shapes(attend: Attend, empty: dict[str, int], causal: bool) -> None:
    query, key, value = replace(Case("any", dtype="bfloat16"), **empty).tensors()
    assert torch.equal(attend(query, key, value, causal=causal), torch.zeros_like(query))


def test_score_below_any_finite_stand_in_for_minus_infinity(attend: Attend) -> None:
    shape = {"length_q": 1, "length_kv": 1, "head_dim": 128}
    query, key, value = Case("any", inputs="very negative score", **shape).tensors()
    assert torch.equal(attend(query, key, value), torch.ones_like(value))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_row_at_the_lowest_finite_number_is_the_mean_of_the_values(
    attend: Attend, dtype: str
) -> None:
    query, key, value = Case("any", dtype=dtype).tensors()
    mask = torch.zeros(64, 64, dtype=query.dtype)
    mask[10] = torch.finfo(query.dtype).min
    output = attend(query, key, value, mask=mask)
    mean = value.double().mean(dim=2)
    step = torch.finfo(query.dtype).eps
    torch.testing.assert_close(output[:, :, 10].double(), mean, rtol=step, atol=step)
    assert_right(output, query, key, value, mask=mask)


@pytest.mark.parametrize("inputs", ["permuted", "strided", "expanded key"])
def test_memory_layout_does_not_matter(attend: Attend, inputs: str) -> None:
    case = Case("any", inputs=inputs, length_q=50, length_kv=70)
    tensors = case.tensors()
    assert not all(tensor.is_contiguous() for tensor in tensors)
    contiguous = [tensor.contiguous() for tensor in tensors]
    torch.testing.assert_close(attend(*tensors), attend(*contiguous), rtol=0, atol=2e-6)


@pytest.mark.parametrize(("heads", "heads_kv"), [(24, 12), (6, 2), (5, 1), (3, 3)])
@pytest.mark.parametrize("causal", [False, True])
def test_each_query_head_reads_its_own_key_head(
    attend: Attend, heads: int, heads_kv: int, causal: bool
) -> None:
    query, key, value = Case("any", heads=heads, heads_kv=heads_kv, head_dim=16).tensors()
    output = attend(query, key, value, causal=causal)
    for head in range(heads):
        own = slice(head, head + 1)
        shared = slice(head * heads_kv // heads, head * heads_kv // heads + 1)
        assert_right(
            output[:, own], query[:, own], key[:, shared], value[:, shared], causal=causal
        )


def test_heads_that_do_not_divide_are_refused(attend: Attend) -> None:
    with pytest.raises(ValueError, match=r"5.*2"):
        attend(*Case("any", heads=5, heads_kv=2).tensors())


@pytest.mark.parametrize(
    ("name", "shape"),
    [("value", (1, 2, 5, 64)), ("value", (2, 2, 9, 64)), ("key", (1, 2, 9, 32))],
)
def test_shapes_that_do_not_fit_are_refused(
    attend: Attend, name: str, shape: tuple[int, ...]
) -> None:
    query, key, value = Case("any", length_kv=9).tensors()
    tensors = {"query": query, "key": key, "value": value} | {name: torch.zeros(shape)}
    with pytest.raises(ValueError, match="do not fit"):
        attend(*tensors.values())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("inputs", ["five times larger", "logits times 1e4"])
@pytest.mark.parametrize("causal", [False, True])
def test_large_magnitudes_stay_finite_and_right(
    attend: Attend, dtype: str, inputs: str, causal: bool
) -> None:
    tensors = Case("any", dtype=dtype, inputs=inputs, length_q=137, length_kv=137).tensors()
    output = attend(*tensors, causal=causal)
    assert output.isfinite().all()
    assert_right(output, *tensors, causal=causal)


@pytest.mark.parametrize("kind", ["boolean", "addend"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        (20, 50),
        (3, 1, 20, 50),
        (1, 2, 20, 50),
        (3, 2, 20, 50),
        (20, 1),
        (1, 50),
        (50,),
        (2, 20, 50),
    ],
    ids=str,
)
def test_mask_broadcasts(attend: Attend, shape: tuple[int, ...], causal: bool, kind: str) -> None:
    tensors = Case("any", batch=3, length_q=20, length_kv=50, head_dim=16).tensors()
    mask = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    mask = mask > 0 if kind == "boolean" else mask
    output = attend(*tensors, causal=causal, mask=mask)
    assert_right(output, *tensors, causal=causal, mask=mask)


@pytest.mark.parametrize("scale", [0.0, 0.02, 1.0])
def test_explicit_scale(attend: Attend, scale: float) -> None:
    tensors = Case("any").tensors()
    assert_right(attend(*tensors, scale=scale), *tensors, scale=scale)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arguments_are_left_alone_and_the_dtype_is_kept(attend: Attend, dtype: str) -> None:
    case = Case("any", dtype=dtype, heads=4, hidden="later rows, addend")
    arguments = (*case.tensors(), case.mask())
    before = [tensor.clone() for tensor in arguments]
    output = attend(*arguments[:3], causal=True, mask=arguments[3])
    assert all(map(torch.equal, arguments, before))
    assert output.dtype == arguments[0].dtype
    assert output.shape == arguments[0].shape


def test_same_call_gives_the_same_bits_on_all_cores(
    attend: Attend, set_threads: Callable[[int], None]
) -> None:
    set_threads(usable_cores())
    tensors = Case("any", heads=8, heads_kv=4, length_q=137, length_kv=300).tensors()
    first = attend(*tensors, causal=True)
    assert all(torch.equal(first, attend(*tensors, causal=True)) for _ in range(5))


def test_support_and_size_are_known_without_data(options: dict[str, Any]) -> None:
    implementation = build(options)
    for case in hard_cases(DTYPES):
        tensors = case.without_data()
        reason = implementation.unsupported(*tensors, causal=case.causal, mask=case.mask())
        assert reason is None or reason.strip()
        account = implementation.peak_bytes(*tensors, causal=case.causal)
        assert all(held and isinstance(size, int) for held, size in account.items())
        assert all(size >= 0 for size in account.values())
        assert sum(account.values()) >= tensors[0].nbytes  # the output is held at the end
