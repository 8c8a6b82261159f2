"""Tiled attention with blocks of queries too: what is held at once is block x block.

The loop order of FlashAttention-2 (Dao 2023, algorithm 1): queries outside, keys inside.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tiled_attention.implementations.conventions import (
    HALF,
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
class QueryTiled:
    """Holds query_block_size x block_size scores; causal skips the key blocks no row sees."""

    block_size: int = 256
    query_block_size: int = 256

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
        output = torch.empty_like(query)
        for start in range(0, length_q, self.query_block_size):
            rows = range(start, min(start + self.query_block_size, length_q))
            visible = length_kv
            if causal:  # the last row of the block sees the most keys
                visible = max(0, min(length_kv, rows.stop + length_kv - length_q))
            output[:, :, rows.start : rows.stop] = self._attend_rows(
                query, key, value, rows, range(visible), lengths, causal, scale, mask
            )
        return output

    def _attend_rows(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        rows: range,
        visible: range,
        lengths: tuple[int, int],
        causal: bool,
        scale: float,
        mask: Tensor | None,
    ) -> Tensor:
        """Return the output of query `rows`, in the accumulator's dtype."""
        query_block = query[:, :, rows.start : rows.stop]
        running_max = query.new_full(
            (*query_block.shape[:3], 1), -math.inf, dtype=accumulator(query.dtype)
        )
        normaliser = torch.zeros_like(running_max)
        output = torch.zeros_like(query_block, dtype=running_max.dtype)
        for start in visible[:: self.block_size]:
            columns = range(start, min(start + self.block_size, visible.stop))
            key_block = key[:, :, columns.start : columns.stop]
            value_block = value[:, :, columns.start : columns.stop]

            scores = product(query_block, key_block.mT).mul_(scale)
            apply_mask_(scores, rows, columns, lengths, causal, mask)
            new_max = torch.maximum(running_max, scores.amax(dim=-1, keepdim=True))
            shift = finite_or_zero(new_max)
            rescale = torch.exp(running_max - shift)
            probabilities = scores.sub_(shift).exp_()

            normaliser.mul_(rescale).add_(probabilities.sum(dim=-1, keepdim=True))
            output.mul_(rescale).add_(product(probabilities, value_block))
            running_max = new_max
        return normalise(output, normaliser)

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """See `implementations.Attention`: everything is supported."""
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`."""
        heads_in_batch = query.shape[0] * query.shape[1]
        wide = accumulator(query.dtype).itemsize
        rows = min(self.query_block_size, query.shape[2])
        columns = min(self.block_size, key.shape[2])
        block_bytes = heads_in_batch * rows * columns * wide
        output_block_bytes = heads_in_batch * rows * query.shape[3] * wide
        earlier_block = block_bytes if columns < key.shape[2] else 0
        # Either the new scores, beside the last block's probabilities, or the output's update.
        query_copy = output_block_bytes if query.dtype in HALF and not query.is_cuda else 0
        maximum = block_bytes + earlier_block + output_block_bytes + query_copy
        update = block_bytes + 2 * output_block_bytes
        return {
            "output": query.numel() * query.dtype.itemsize,
            "running maximum, normaliser and their updates": 7 * heads_in_batch * rows * wide,
            "score and probability blocks, output block": max(maximum, update),
            **repeated_heads_bytes(query, key, value),
            **product_copies(0, value[:, :, : self.block_size], heads=query.shape[1]),
        }
