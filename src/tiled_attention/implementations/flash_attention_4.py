"""FlashAttention-4, from the optional package flash-attn-4 of github.com/Dao-AILab."""

from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import Tensor

from tiled_attention.implementations.conventions import HALF, check_shapes, softmax_scale

HEAD_DIMS = (64, 96, 128)
LEAST_CAPABILITY = (9, 0)


@dataclass(frozen=True)
class FlashAttention4:
    """The fastest published kernel for Hopper and Blackwell that is written in Python."""

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
        """See `implementations.Attention`; the package wants (batch, length, heads, head_dim)."""
        from flash_attn.cute import flash_attn_func

        check_shapes(query, key, value)
        output, _ = flash_attn_func(
            *(tensor.transpose(1, 2) for tensor in (query, key, value)),
            causal=causal,
            softmax_scale=softmax_scale(query, scale),
        )
        transposed: Tensor = output.transpose(1, 2)
        return transposed

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """See `implementations.Attention`."""
        if find_spec("flash_attn") is None or find_spec("flash_attn.cute") is None:
            return "package flash-attn-4 is not installed"
        if not query.is_cuda or torch.cuda.get_device_capability() < LEAST_CAPABILITY:
            return "needs a CUDA device of compute capability 9.0 or newer"
        if query.dtype not in HALF:
            return "only BF16 and FP16"
        if mask is not None:
            return "takes no mask but the causal one"
        if query.shape[-1] not in HEAD_DIMS:
            return f"head_dim {query.shape[-1]} is none of {HEAD_DIMS}"
        if query.numel() == 0 or key.numel() == 0:
            return "no empty sequences"
        if any(tensor.stride(-1) != 1 for tensor in (query, key, value)):
            return "needs the last dimension to have stride 1"
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`."""
        return {"output": query.numel() * query.dtype.itemsize}
