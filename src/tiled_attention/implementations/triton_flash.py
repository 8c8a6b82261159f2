"""Fused attention in Triton, as PyTorch calls it; the kernel is in triton_flash_kernel.py."""

import math
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import triton
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from tiled_attention.implementations.conventions import check_shapes, softmax_scale
from tiled_attention.implementations.triton_flash_kernel import flash_forward
from tiled_attention.implementations.tuned import Blocks, choose_blocks

LOG2_E = math.log2(math.e)
LARGEST_HEAD_DIM = 256
LEAST_CAPABILITY = 80  # mma for BF16
TMA_CAPABILITY = 90
MATRIX_PRECISION = "ieee"  # FP32 products are FP32, never TF32


@dataclass(frozen=True)
class TritonFlash:
    """One fused kernel; block sizes, warps and stages come from the table in `tuned`.

    FP32 products are true FP32 (`input_precision="ieee"`), never TF32.
    """

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
        output, _ = forward(query, key, value, causal=causal, scale=scale)
        return output

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """See `implementations.Attention`."""
        if mask is not None:
            return "triton_flash takes no mask but the causal one"
        if query.shape[-1] > LARGEST_HEAD_DIM:
            return f"head_dim {query.shape[-1]} is over {LARGEST_HEAD_DIM}"
        if interpreted():
            half = query.dtype == torch.bfloat16
            return "Triton's interpreter multiplies the bit patterns of BF16" if half else None
        if not query.is_cuda:
            if os.environ.get("TRITON_INTERPRET") == "1":
                return "TRITON_INTERPRET was set after triton was imported: set it before"
            return "needs a CUDA device"
        if capability(query.device) < LEAST_CAPABILITY:
            return f"needs compute capability {LEAST_CAPABILITY / 10} or newer"
        return None

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """See `implementations.Attention`: nothing beside the output leaves the chip."""
        return {"output": query.numel() * query.dtype.itemsize}


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    return_lse: bool = False,
    blocks: Blocks | None = None,
    poison: float | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Return the output and, on request, the natural log-sum-exp of each row's scaled scores.

    Shapes are those of `implementations.Attention`; the log-sum-exp is FP32 of shape (batch,
    heads, length_q), and -inf for a row that sees no key. `blocks` replaces the tuned choice;
    `poison` fills the output first, so that an element never written shows.

    Raises:
        ValueError: the shapes do not fit together.
    """
    check_shapes(query, key, value)
    batch, heads, length_q, head_dim = query.shape
    heads_kv, length_kv = key.shape[1:3]
    output = torch.empty_like(query, memory_format=torch.contiguous_format)
    if poison is not None:
        output.fill_(poison)
    lse = query.new_empty((batch, heads, length_q), dtype=torch.float32) if return_lse else None
    if output.numel() == 0:
        return output, lse
    padded_dim = max(16, triton.next_power_of_2(head_dim))
    if blocks is None:
        blocks = choose_blocks(capability(query.device), padded_dim, query.element_size())
    scale = softmax_scale(query, scale)
    tensors = query, key, value, output
    descriptor = takes_descriptors(*tensors)
    flash_forward[(triton.cdiv(length_q, blocks.block_m) * batch * heads,)](
        *(descriptors(tensors, blocks) if descriptor else tensors),
        lse,
        *(tensor.stride() for tensor in tensors),
        heads,
        heads // heads_kv,
        length_q,
        length_kv,
        (abs(scale) or 1.0) * LOG2_E,
        CAUSAL=causal,
        BLOCK_M=blocks.block_m,
        BLOCK_N=blocks.block_n,
        HEAD_DIM=head_dim,
        PADDED_DIM=padded_dim,
        DESCRIPTOR=descriptor,
        PRECISION=MATRIX_PRECISION,
        SIGN=(scale > 0) - (scale < 0),
        STORE_LSE=return_lse,
        num_warps=blocks.warps,
        num_stages=blocks.stages,
    )
    return output, lse


def takes_descriptors(*tensors: Tensor) -> bool:
    """Tell whether the tensor memory accelerator can read and write all of these as they are.

    It wants 16-byte aligned rows of stride 1, and no head_dim that must be padded.
    """
    head_dim = tensors[0].shape[-1]
    if not tensors[0].is_cuda or capability(tensors[0].device) < TMA_CAPABILITY:
        return False
    if head_dim < 16 or head_dim & (head_dim - 1):
        return False
    return all(
        tensor.numel()
        and tensor.stride(-1) == 1
        and tensor.data_ptr() % 16 == 0
        and all(
            step > 0 and step * tensor.element_size() % 16 == 0 for step in tensor.stride()[:-1]
        )
        for tensor in tensors
    )


def descriptors(tensors: tuple[Tensor, ...], blocks: Blocks) -> list[TensorDescriptor]:
    """Return TMA descriptors of query, key, value and output, of one block of one head."""
    rows = blocks.block_m, blocks.block_n, blocks.block_n, blocks.block_m
    return [
        TensorDescriptor(
            tensor, list(tensor.shape), list(tensor.stride()), [1, 1, block, tensor.shape[-1]]
        )
        for tensor, block in zip(tensors, rows, strict=True)
    ]


@cache
def capability(device: torch.device) -> int:
    """Return the compute capability as one number (90 for 9.0); the interpreter counts as 80."""
    if device.type != "cuda":
        return LEAST_CAPABILITY
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


def interpreted() -> bool:
    """Tell whether the kernel was made for Triton's interpreter, when this file was imported."""
    kernel: Any = flash_forward
    return isinstance(kernel, InterpretedFunction)
