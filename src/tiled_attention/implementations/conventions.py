"""What all eager implementations share: argument checks, grouped heads, masks, FP32 products."""

import math

import torch
from torch import Tensor

HALF = (torch.bfloat16, torch.float16)


def softmax_scale(query: Tensor, scale: float | None) -> float:
    """Return `scale`, or 1 / sqrt(head_dim) where it is None."""
    return 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype of scores, statistics and running output: FP32, or FP64 for FP64."""
    return torch.promote_types(dtype, torch.float32)


def check_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Check what `implementations.Attention` asks of the shapes.

    Raises:
        ValueError: heads is no multiple of heads_kv, or the shapes do not fit together.
    """
    heads, heads_kv = query.shape[1], key.shape[1]
    if key.shape[:3] != value.shape[:3] or query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query {tuple(query.shape)}, key {tuple(key.shape)} and value {tuple(value.shape)} "
            "do not fit together: (batch, heads, length, head_dim) is expected"
        )
    if heads_kv == 0 or heads % heads_kv:
        raise ValueError(f"{heads} query heads are no multiple of {heads_kv} key heads")


def repeat_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Give key and value one head for each query head (grouped-query attention).

    Query head h reads key head h // (heads / heads_kv). A copy, unless the heads are equal.
    Raises as `check_shapes`.
    """
    check_shapes(query, key, value)
    heads, heads_kv = query.shape[1], key.shape[1]
    if heads == heads_kv:
        return key, value
    group = heads // heads_kv
    return key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)


def repeated_heads_bytes(query: Tensor, key: Tensor, value: Tensor) -> dict[str, int]:
    """Return the bytes that `repeat_heads` copies, by name."""
    if query.shape[1] == key.shape[1]:
        return {}
    group = query.shape[1] // key.shape[1]
    return {"key and value, one head for each query head": group * (key.nbytes + value.nbytes)}


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return left @ right; half-precision operands are accumulated and returned in FP32."""
    if left.dtype not in HALF and right.dtype not in HALF:
        return left @ right
    if left.is_cuda:  # the matrix units take half operands and keep the FP32 sum
        narrow = right.dtype if right.dtype in HALF else left.dtype
        batched: Tensor = torch.bmm(
            left.to(narrow).flatten(0, 1), right.to(narrow).flatten(0, 1), out_dtype=torch.float32
        )
        unflattened: Tensor = batched.unflatten(0, left.shape[:2])
        return unflattened
    return left.float() @ right.float()


def product_copies(left_elements: int, right: Tensor, heads: int) -> dict[str, int]:
    """Return the bytes of the operand that `product` copies for `left @ right`, by name.

    left is an FP32 tensor of `left_elements`; right has one head for each of `heads` in use.
    """
    if right.dtype not in HALF:
        return {}
    if right.is_cuda:
        return {"left operand in half precision": left_elements * right.dtype.itemsize}
    return {"right operand in FP32": right.numel() // right.shape[1] * heads * 4}


def apply_mask_(
    scores: Tensor,
    rows: range,
    columns: range,
    lengths: tuple[int, int],
    causal: bool,
    mask: Tensor | None,
) -> Tensor:
    """Hide or shift, in place, the scores of query `rows` against key `columns`.

    scores is (batch, heads, len(rows), len(columns)); lengths is (length_q, length_kv).
    """
    if causal:
        last_visible = torch.arange(rows.start, rows.stop, device=scores.device)
        last_visible += lengths[1] - lengths[0]
        column = torch.arange(columns.start, columns.stop, device=scores.device)
        scores.masked_fill_(column > last_visible[:, None], -math.inf)
    if mask is not None:
        block = mask.expand(*mask.shape[:-2], *lengths)
        block = block[..., rows.start : rows.stop, columns.start : columns.stop]
        if mask.dtype == torch.bool:
            scores.masked_fill_(~block, -math.inf)
        else:
            scores += block
    return scores


def finite_or_zero(maximum: Tensor) -> Tensor:
    """Replace -inf by 0, so that exp(score - maximum) is 0, not NaN, where nothing is visible."""
    return maximum.masked_fill(maximum == -math.inf, 0.0)


def normalise(output: Tensor, normaliser: Tensor) -> Tensor:
    """Return output / normaliser, and 0 where no key was visible (the normaliser is 0 there)."""
    return output / normaliser.masked_fill(normaliser == 0, 1.0)
