"""PyTorch's flex_attention, compiled: the fused kernel that torch.compile writes."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from tiled_attention.implementations.conventions import check_shapes, softmax_scale

BLOCK = 128  # flex_attention's own block of keys and queries
HEAD_DIMS = (64, 128)


@dataclass(frozen=True)
class Flex:
    """Causal through a block mask, made once for each length and kept."""

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
        check_shapes(query, key, value)
        blocks = causal_blocks(query.shape[2], str(query.device)) if causal else None
        output: Tensor = compiled()(
            query, key, value, block_mask=blocks, scale=softmax_scale(query, scale)
        )
        return output

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """See `implementations.Attention`: whole blocks only, since each shape is compiled."""
        lengths = query.shape[2], key.shape[2]
        if not query.is_cuda:
            return "needs a CUDA device"
        if mask is not None:
            return "judged without masks"
        if lengths[0] != lengths[1] or lengths[0] < 2 * BLOCK or lengths[0] % BLOCK:
            return f"judged at equal lengths, multiples of {BLOCK} from {2 * BLOCK} on"
        if query.shape[1] != key.shape[1] or query.shape[-1] not in HEAD_DIMS:
            return f"judged without grouped heads, at head_dim {HEAD_DIMS}"
        if query.dtype == torch.float32:
            return "judged in BF16 and FP16"
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`."""
        return {
            "output": query.numel() * query.dtype.itemsize,
            "log-sum-exp": query.shape[0] * query.shape[1] * query.shape[2] * 4,
        }


@cache
def compiled() -> Any:
    """Return flex_attention compiled for each shape that it meets."""
    torch._dynamo.config.recompile_limit = 256
    return torch.compile(flex_attention, dynamic=False)


@cache
def causal_blocks(length: int, device: str) -> BlockMask:
    """Return the block mask of square causal attention."""

    def visible(batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return row >= column

    return create_block_mask(visible, None, None, length, length, device=device)
