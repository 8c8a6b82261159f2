"""PyTorch's fused attention on a GPU, one backend at a time."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.backends.cuda import (
    SDPAParams,
    can_use_cudnn_attention,
    can_use_efficient_attention,
    can_use_flash_attention,
)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from tiled_attention.implementations.conventions import check_shapes, softmax_scale

BACKENDS = {
    "flash": (SDPBackend.FLASH_ATTENTION, can_use_flash_attention),
    "cudnn": (SDPBackend.CUDNN_ATTENTION, can_use_cudnn_attention),
    "efficient": (SDPBackend.EFFICIENT_ATTENTION, can_use_efficient_attention),
}


@dataclass(frozen=True)
class GpuSdpa:
    """The backend is pinned: PyTorch raises where it cannot run, and never falls back unseen."""

    backend: Literal["flash", "cudnn", "efficient"]

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
        with sdpa_kernel(BACKENDS[self.backend][0]):
            return scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask=mask,
                is_causal=causal,
                scale=softmax_scale(query, scale),
                enable_gqa=query.shape[1] != key.shape[1],
            )

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """See `implementations.Attention`: what the backend itself refuses, and what it gets
        wrong by this package's conventions.
        """
        if not query.is_cuda:
            return "needs a CUDA device"
        if query.numel() == 0 or key.numel() == 0:
            return "no empty sequences"
        if mask is not None:
            return "judged without masks: each backend takes some kinds only"
        if causal and query.shape[2] != key.shape[2]:
            return "PyTorch's causal flag is aligned to the top left"
        if any(tensor.stride(-1) != 1 for tensor in (query, key, value)):
            return "PyTorch's fused kernels need the last dimension to have stride 1"
        if self.backend == "efficient" and query.dtype == torch.float32:
            return "judged in half precision: its FP32 errs four times as much as naive's"
        grouped = query.shape[1] != key.shape[1]
        call = SDPAParams(query, key, value, mask, 0.0, causal, grouped)
        if not BACKENDS[self.backend][1](call, False):
            return f"PyTorch's {self.backend} backend refuses this shape or dtype"
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`."""
        held = {"output": query.numel() * query.dtype.itemsize}
        if self.backend == "flash":
            held["log-sum-exp"] = query.shape[0] * query.shape[1] * query.shape[2] * 4
        return held
