"""Compile the Triton kernel for a GPU that is not there, and read what it needs."""

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tiled_attention.implementations.triton_flash import MATRIX_PRECISION, TMA_CAPABILITY
from tiled_attention.implementations.triton_flash_kernel import flash_forward
from tiled_attention.implementations.tuned import Blocks

TRITON_TYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
TENSORS = ("query", "key", "value", "output")
STRIDES = ("strides_q", "strides_k", "strides_v", "strides_o")
# Instructions of the tensor cores: Ampere's, Hopper's, Blackwell's.
MATRIX_INSTRUCTIONS = ("mma.sync", "wgmma.mma_async", "tcgen05.mma")
SHARED_BYTES = {80: 166_912, 90: 232_448, 100: 232_448}  # most that one program may take


def compiled(capability: int, dtype: str, head_dim: int, causal: bool, blocks: Blocks) -> Any:
    """Return Triton's compiled kernel for aligned, contiguous inputs of `head_dim` columns.

    `capability` is 90 for 9.0; from TMA_CAPABILITY on, the kernel that reads by TMA descriptors.
    """
    descriptor = capability >= TMA_CAPABILITY
    kind = TRITON_TYPES[dtype]
    names = flash_forward.arg_names
    signature: dict[str, Any] = dict.fromkeys(names, "i32")
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for name in TENSORS:
        rows = blocks.block_m if name in ("query", "output") else blocks.block_n
        block = f"tensordesc<{kind}[1, 1, {rows}, {head_dim}]>"
        signature[name] = block if descriptor else f"*{kind}"
        if not descriptor:
            attributes[(names.index(name),)] = [["tt.divisibility", 16]]
    for name in STRIDES:
        place = names.index(name)
        signature[name] = ("i32", "i32", "i32", "constexpr")
        constants[(place, 3)] = 1
        for dimension in range(3):
            attributes[(place, dimension)] = [["tt.divisibility", 16]]
    signature["scale_log2"] = "fp32"
    for name, value in {
        "log_sum_exp": None,
        "CAUSAL": causal,
        "BLOCK_M": blocks.block_m,
        "BLOCK_N": blocks.block_n,
        "HEAD_DIM": head_dim,
        "PADDED_DIM": head_dim,
        "DESCRIPTOR": descriptor,
        "PRECISION": MATRIX_PRECISION,
        "SIGN": 1,
        "STORE_LSE": False,
    }.items():
        signature[name] = "constexpr"
        constants[(names.index(name),)] = value
    source = ASTSource(flash_forward, signature, constexprs=constants, attrs=attributes)
    return triton.compile(
        source,
        target=GPUTarget("cuda", capability, 32),
        options={"num_warps": blocks.warps, "num_stages": blocks.stages},
    )


def resources(kernel: Any) -> dict[str, Any]:
    """Return registers a thread, spilled and shared bytes, and the instructions that matter."""
    ptx = kernel.asm["ptx"]
    usage = _usage(kernel.asm["cubin"])
    return {
        "registers": usage["REG"],
        "spilled_bytes": usage["LOCAL"] + usage["STACK"],
        "shared_bytes": kernel.metadata.shared,
        "matrix_instruction": next((it for it in MATRIX_INSTRUCTIONS if it in ptx), "none"),
        "tma": "cp.async.bulk.tensor" in ptx,
    }


def _usage(cubin: bytes) -> dict[str, int]:
    """Return the assembler's own count of what one thread takes."""
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=True
        )
    return {name: int(size) for name, size in re.findall(r"(REG|STACK|LOCAL):(\d+)", done.stdout)}
