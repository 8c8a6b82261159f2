"""Tiled attention as the article writes it: all queries at once, keys and values in blocks.

The online softmax follows FlashAttention (Dao et al. 2022, algorithm 1) with the output left
unnormalised until the end (FlashAttention-2, Dao 2023, section 3.1).
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tiled_attention.implementations.conventions import (
    accumulator,
    apply_mask_,
    finite_or_zero,
    normalise,
    product,
    product_copies,
    repeat_heads,
    repeated_heads_bytes,
    softmax_scale,
)


@dataclass(frozen=True)
class Tiled:
    """One Python loop over blocks of `block_size` keys; holds length_q x block_size scores."""

    block_size: int = 64

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
        scale = softmax_scale(query, scale)
        lengths = length_q, length_kv = query.shape[2], key.shape[2]
        hides = causal or mask is not None

        running_max = query.new_full(
            (*query.shape[:3], 1), -math.inf, dtype=accumulator(query.dtype)
        )
        normaliser = torch.zeros_like(running_max)
        output = torch.zeros_like(query, dtype=running_max.dtype)
        for start in range(0, length_kv, self.block_size):
            columns = range(start, min(start + self.block_size, length_kv))
            key_block = key[:, :, columns.start : columns.stop]
            value_block = value[:, :, columns.start : columns.stop]

            scores = product(query, key_block.mT) * scale
            if hides:
                apply_mask_(scores, range(length_q), columns, lengths, causal, mask)
            new_max = torch.maximum(running_max, scores.amax(dim=-1, keepdim=True))
            shift = finite_or_zero(new_max) if hides else new_max
            rescale = torch.exp(running_max - shift)
            probabilities = torch.exp(scores - shift)

            normaliser = normaliser * rescale + probabilities.sum(dim=-1, keepdim=True)
            output = output * rescale + product(probabilities, value_block)
            running_max = new_max
        return normalise(output, normaliser).to(query.dtype)

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """See `implementations.Attention`: everything is supported."""
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`."""
        rows = query.shape[0] * query.shape[1] * query.shape[2]
        wide = accumulator(query.dtype).itemsize
        columns = min(self.block_size, key.shape[2])
        block_bytes = rows * columns * wide
        output_bytes = rows * query.shape[3] * wide
        statistics = {"running maximum, normaliser and their updates": 4 * rows * wide}
        # Either exp(scores - shift), beside the last block's probabilities, or output's update.
        exponential = {
            "score and probability blocks": (4 if columns < key.shape[2] else 3) * block_bytes,
            "output": output_bytes,
        }
        update = {
            "score and probability blocks": 2 * block_bytes,
            "output, rescaled output, product and their sum": 4 * output_bytes,
            **product_copies(rows * columns, value[:, :, : self.block_size], query.shape[1]),
        }
        copies = repeated_heads_bytes(query, key, value)
        return copies | statistics | max(exponential, update, key=lambda held: sum(held.values()))
