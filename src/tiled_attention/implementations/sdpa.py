"""PyTorch's fused attention: the CPU FlashAttention kernel on a CPU, chosen explicitly."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from tiled_attention.implementations.conventions import HALF, check_shapes, softmax_scale

# (least length_q, query rows of a block) and keys of a block, in ATen's cpu/FlashAttentionKernel.
QUERY_BLOCKS = ((768, 256), (192, 64), (0, 32))
KEY_BLOCK = 512


@dataclass(frozen=True)
class Sdpa:
    """The fused reference. The backend is pinned, so that PyTorch cannot fall back unseen."""

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
        if query.numel() == 0 or key.shape[2] == 0:
            return torch.zeros_like(query)
        lengths = query.shape[2], key.shape[2]
        if causal and (mask is not None or lengths[0] != lengths[1]):
            # PyTorch's own causal flag is aligned to the top left and takes no mask beside it.
            mask, causal = causal_mask(lengths, query, mask), False
        if mask is not None:  # the kernel takes masks of two or four dimensions
            mask = mask[(None,) * (4 - mask.ndim)]
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
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
        """See `implementations.Attention`."""
        if any(tensor.numel() and tensor.stride(-1) != 1 for tensor in (query, key, value)):
            return "PyTorch's fused kernels need the last dimension to have stride 1"
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`; the buffers of PyTorch's CPU FlashAttention kernel.

        Each thread holds a block of scores, two statistics a row and a block of output in FP32.
        """
        batch, heads, length_q, head_dim = query.shape
        rows = min(next(rows for least, rows in QUERY_BLOCKS if length_q >= least), length_q)
        columns = min(KEY_BLOCK, key.shape[2])
        thread_elements = rows * columns + 2 * rows + rows * head_dim
        half_copy = rows * columns * query.dtype.itemsize if query.dtype in HALF else 0
        held = {
            "output": query.numel() * query.dtype.itemsize,
            "log-sum-exp": batch * heads * length_q * 4,
            "buffers of all threads": torch.get_num_threads() * (thread_elements * 4 + half_copy),
        }
        if query.dtype == torch.bfloat16:  # what AMX needs; less where the CPU has none
            packed = (key.numel() + value.numel()) * key.dtype.itemsize
            held["packed copies, at most"] = packed + torch.get_num_threads() * half_copy
        if causal and length_q != key.shape[2]:  # the mask is made here, see __call__
            elements = length_q * key.shape[2]
            held["causal mask, boolean and as an addend"] = elements * (1 + query.dtype.itemsize)
        return held


def causal_mask(lengths: tuple[int, int], query: Tensor, mask: Tensor | None) -> Tensor:
    """Return `mask` with the bottom-right aligned causal mask on top; boolean stays boolean."""
    visible = torch.ones(lengths, dtype=torch.bool, device=query.device)
    visible = visible.tril(diagonal=lengths[1] - lengths[0])
    if mask is None:
        return visible
    if mask.dtype == torch.bool:
        return mask & visible
    return mask.masked_fill(~visible, -torch.inf)
