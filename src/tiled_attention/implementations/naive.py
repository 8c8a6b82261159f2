"""Naive attention: the whole length_q x length_kv score matrix, softmax, times value."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tiled_attention.implementations.conventions import (
    accumulator,
    apply_mask_,
    product,
    product_copies,
    repeat_heads,
    repeated_heads_bytes,
    softmax_scale,
)


@dataclass(frozen=True)
class Naive:
    """The article's baseline."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        causal: bool = False,
        scale: float | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """See `implementations.Attention`."""
        key, value = repeat_heads(query, key, value)
        length_q, length_kv = query.shape[2], key.shape[2]
        scores = product(query, key.mT) * softmax_scale(query, scale)
        if causal or mask is not None:
            lengths = (length_q, length_kv)
            apply_mask_(scores, range(length_q), range(length_kv), lengths, causal, mask)
            sees_nothing = (scores == -torch.inf).all(dim=-1, keepdim=True)
            probabilities = torch.softmax(scores, dim=-1).masked_fill_(sees_nothing, 0.0)
        else:
            probabilities = torch.softmax(scores, dim=-1)
        return product(probabilities, value).to(query.dtype)

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """See `implementations.Attention`: everything is supported."""
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`."""
        batch, heads, length_q, _ = query.shape
        wide = accumulator(query.dtype).itemsize
        score_bytes = batch * heads * length_q * key.shape[2] * wide
        return {
            "scores": score_bytes,
            "probabilities": score_bytes,
            "output": query.numel() * wide,
            **repeated_heads_bytes(query, key, value),
            **product_copies(score_bytes // wide, value, heads),
        }
