"""The specification: exact attention in FP64, and what naive attention loses in a given dtype."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

SCORES_AT_ONCE = {"cpu": 2**20, "cuda": 2**27}  # few enough to stay in a cache, to fill a GPU


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
    operands: torch.dtype | None = None,
) -> Tensor:
    """Naive attention with every step in the dtype `compute`, some heads and rows at a time.

    Shapes and conventions are those of `implementations.Attention`. `storage`, where given, is
    the dtype to which the output is rounded; `operands`, the one to which the probabilities are,
    before they are multiplied. Returns `compute`'s dtype.
    """
    (batch, heads, length_q, head_dim), (heads_kv, length_kv) = query.shape, key.shape[1:3]
    group = heads // max(heads_kv, 1)
    wide_query = query.to(compute)
    wide_key = key.to(compute).repeat_interleave(group, dim=1)
    wide_value = value.to(compute).repeat_interleave(group, dim=1)
    scale = 1.0 / math.sqrt(head_dim) if scale is None else scale
    if mask is not None:
        mask = mask.expand(batch, heads, length_q, length_kv)
    output = torch.empty_like(wide_query)
    for part in _parts(query, length_kv):
        scores = (wide_query[part] @ wide_key[part[:2]].mT).mul_(scale)
        scores = _hide(scores, part, length_q, length_kv, causal, mask)
        probabilities = torch.softmax(scores, dim=-1)
        if causal or mask is not None:
            sees_nothing = (scores == -math.inf).all(dim=-1, keepdim=True)
            probabilities.masked_fill_(sees_nothing, 0.0)
        if operands is not None:
            probabilities = probabilities.to(operands).to(compute)
        output[part] = probabilities @ wide_value[part[:2]]
    return output if storage is None else output.to(storage).to(compute)


def largest_score(query: Tensor, key: Tensor, scale: float | None) -> float:
    """Return the largest absolute score, in FP32; 0 where there is none."""
    group = query.shape[1] // max(key.shape[1], 1)
    wide_query, wide_key = query.float(), key.float().repeat_interleave(group, dim=1)
    scale = 1.0 / math.sqrt(query.shape[3]) if scale is None else scale
    if not query.numel() or not key.numel():
        return 0.0
    return max(
        abs(scale) * (wide_query[part] @ wide_key[part[:2]].mT).abs().max().item()
        for part in _parts(query, key.shape[2])
    )


def _parts(query: Tensor, length_kv: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield an index of a sequence, heads and query rows, with about SCORES_AT_ONCE scores."""
    at_once = SCORES_AT_ONCE[query.device.type]
    batch, heads, length_q, _ = query.shape
    some_heads = min(heads, max(1, at_once // max(1, length_q * length_kv)))
    some_rows = max(1, at_once // max(1, some_heads * length_kv))
    for index in range(batch):
        for head in range(0, heads, max(1, some_heads)):
            for row in range(0, length_q, some_rows):
                yield index, slice(head, head + some_heads), slice(row, row + some_rows)


def _hide(
    scores: Tensor,
    part: tuple[int, slice, slice],
    length_q: int,
    length_kv: int,
    causal: bool,
    mask: Tensor | None,
) -> Tensor:
    if causal:
        positions = torch.arange(length_q, device=scores.device) + length_kv - length_q
        later = torch.arange(length_kv, device=scores.device) > positions[part[2], None]
        scores.masked_fill_(later, -math.inf)
    if mask is not None:
        if mask.dtype == torch.bool:
            return scores.masked_fill_(~mask[part], -math.inf)
        return scores.add_(mask[part])
    return scores
