"""The Triton kernel under Triton's interpreter: run by test_interpreter.py in its own process."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tiled_attention.cases import Case, hard_cases
from tiled_attention.gate import truth
from tiled_attention.implementations.triton_flash import TritonFlash, forward, interpreted
from tiled_attention.implementations.tuned import Blocks
from tiled_attention.judging import judge

pytestmark = pytest.mark.skipif(
    not interpreted(), reason="TRITON_INTERPRET=1 must be set before triton is imported"
)

SMALL = Blocks(block_m=16, block_n=16, warps=4, stages=1)


def log_sum_exp(query: Tensor, key: Tensor, scale: float, causal: bool) -> Tensor:
    group = query.shape[1] // key.shape[1]
    scores = query.double() @ key.double().repeat_interleave(group, dim=1).mT * scale
    rows, columns = scores.shape[-2:]
    if causal:
        visible = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
        scores = scores.masked_fill(~visible, -math.inf)
    return torch.logsumexp(scores, dim=-1)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_hard_case(dtype: str) -> None:
    rows = {case: judge(TritonFlash(), case) for case in hard_cases([dtype])}
    wrong = {case: row for case, row in rows.items() if row["passed"] is False}
    assert not wrong
    assert sum(row["passed"] is True for row in rows.values()) > len(rows) / 2


def test_bfloat16_is_skipped_with_the_reason() -> None:
    row = judge(TritonFlash(), Case("any", dtype="bfloat16"))
    assert row["passed"] is None
    assert "bit patterns of BF16" in row["status"]


@settings(max_examples=25)
@given(
    heads=st.sampled_from([(1, 1), (4, 2), (3, 1)]),
    length_q=st.integers(1, 40),
    length_kv=st.integers(0, 40),
    head_dim=st.sampled_from([8, 16, 20, 40]),
    causal=st.booleans(),
    scale=st.sampled_from([None, 0.0, -0.3, 0.7]),
    seed=st.integers(0, 2**20),
)
def test_any_small_shape_and_its_log_sum_exp(
    heads: tuple[int, int],
    length_q: int,
    length_kv: int,
    head_dim: int,
    causal: bool,
    scale: float | None,
    seed: int,
) -> None:
    shape: dict[str, Any] = dict(zip(("heads", "heads_kv"), heads, strict=True))
    case = Case("drawn", length_q=length_q, length_kv=length_kv, head_dim=head_dim, seed=seed,
                **shape)  # fmt: skip
    query, key, value = case.tensors()
    output, lse = forward(query, key, value, causal=causal, scale=scale, return_lse=True,
                          blocks=SMALL, poison=math.nan)  # fmt: skip
    judgement = truth(query, key, value, causal=causal, scale=scale).judge(output)
    assert judgement.passed, judgement
    used = 1 / math.sqrt(head_dim) if scale is None else scale
    torch.testing.assert_close(
        lse.double(), log_sum_exp(query, key, used, causal), rtol=1e-6, atol=1e-5
    )


def test_a_score_far_below_any_finite_stand_in() -> None:
    """One key, head_dim 128, raw q.k = -524288: the value itself, and that log-sum-exp."""
    query = torch.full((1, 1, 1, 128), 64.0)
    key, value = -query, torch.ones(1, 1, 1, 128)
    output, lse = forward(query, key, value, return_lse=True)
    assert torch.equal(output, value)
    assert lse.item() == pytest.approx(-46340.95, rel=1e-6)


def test_zero_queries_average_what_they_see() -> None:
    query = torch.zeros(1, 1, 2, 16)
    value = torch.arange(5.0)[:, None].expand(1, 1, 5, 16)
    output, _ = forward(query, torch.randn(1, 1, 5, 16), value, causal=True, blocks=SMALL)
    assert output[0, 0, :, 0].tolist() == pytest.approx([1.5, 2.0])


def test_strided_views_are_read_as_they_are() -> None:
    case = Case("any", length_q=20, length_kv=20, inputs="permuted")
    output, _ = forward(*case.tensors(), blocks=SMALL)
    assert truth(*case.tensors()).judge(output).passed
