"""The specification: exact attention in FP64, and what naive attention loses in a given dtype."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

SCORES_AT_ONCE = 2**22  # few enough to stay in a cache


@contextmanager
def full_precision() -> Iterator[None]:
    """Run with FP32 products in FP32, whatever the process set (TF32 and BF16 shortcuts off)."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    causal: bool,
    scale: float | None,
    mask: Tensor | None,
    compute: torch.dtype,
    storage: torch.dtype | None = None,
) -> Tensor:
    """Naive attention with every step in the dtype `compute`, a group of query rows at a time.

    Shapes and conventions are those of `implementations.Attention`. `storage`, where given, is
    the dtype to which the output is rounded. Returns `compute`'s dtype.
    """
    length_q, length_kv = query.shape[2], key.shape[2]
    group = query.shape[1] // max(key.shape[1], 1)
    wide_query = query.to(compute)
    wide_key = key.to(compute).repeat_interleave(group, dim=1)
    wide_value = value.to(compute).repeat_interleave(group, dim=1)
    scale = 1.0 / math.sqrt(query.shape[3]) if scale is None else scale
    output = torch.empty_like(wide_query)
    for rows in _row_groups(query, length_kv):
        scores = wide_query[:, :, rows] @ wide_key.mT * scale
        scores = _hide(scores, rows, length_q, length_kv, causal, mask)
        sees_nothing = (scores == -math.inf).all(dim=-1, keepdim=True)
        probabilities = torch.softmax(scores, dim=-1).masked_fill_(sees_nothing, 0.0)
        output[:, :, rows] = probabilities @ wide_value
    return output if storage is None else output.to(storage).to(compute)


def largest_score(query: Tensor, key: Tensor, scale: float | None) -> float:
    """Return the largest absolute score, in FP32; 0 where there is none."""
    group = query.shape[1] // max(key.shape[1], 1)
    wide_key = key.float().repeat_interleave(group, dim=1)
    scale = 1.0 / math.sqrt(query.shape[3]) if scale is None else scale
    if not query.numel() or not key.numel():
        return 0.0
    return max(
        abs(scale) * (query[:, :, rows].float() @ wide_key.mT).abs().max().item()
        for rows in _row_groups(query, key.shape[2])
    )


def _row_groups(query: Tensor, length_kv: int) -> Iterator[slice]:
    """Yield slices of query rows with about SCORES_AT_ONCE scores each."""
    batch, heads, length_q, _ = query.shape
    step = max(1, SCORES_AT_ONCE // max(1, batch * heads * length_kv))
    for start in range(0, length_q, step):
        yield slice(start, min(start + step, length_q))


def _hide(
    scores: Tensor,
    rows: slice,
    length_q: int,
    length_kv: int,
    causal: bool,
    mask: Tensor | None,
) -> Tensor:
    if causal:
        position = torch.arange(length_q, device=scores.device)[rows, None] + length_kv - length_q
        later = torch.arange(length_kv, device=scores.device) > position
        scores = scores.masked_fill(later, -math.inf)
    if mask is not None:
        part = mask.expand(*mask.shape[:-2], length_q, length_kv)[..., rows, :]
        if mask.dtype == torch.bool:
            return scores.masked_fill(~part, -math.inf)
        return scores + part.to(scores.dtype)
    return scores
