"""Kernels that only read: device memory and its caches (Triton), shared memory (Gluon)."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

WARPS = 16
BLOCK = 8192  # FP32 elements that one program reads at a time: 32 KiB
SLOTS = 4  # blocks in shared memory


@triton.jit
def read_memory(source, sink, elements, times, BLOCK: tl.constexpr):
    """Each program reads `elements` of its own, `times` times over."""
    lanes = tl.arange(0, BLOCK)
    own = source + tl.program_id(0).to(tl.int64) * elements
    total = tl.zeros([BLOCK], tl.float32)
    for _ in range(times):
        for start in range(0, elements, BLOCK):
            total += tl.load(own + start + lanes)
    tl.store(sink + tl.program_id(0) * BLOCK + lanes, total)


@gluon.jit
def read_shared(sink, times, SLOTS: gl.constexpr, BLOCK: gl.constexpr):
    """Each program fills SLOTS blocks of shared memory and reads one block `times` times.

    Which block differs from time to time, so that no read can be moved out of the loop.
    """
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [gl.num_warps()], [0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    lanes = gl.arange(0, BLOCK, layout=layout)
    memory = gl.allocate_shared_memory(gl.float32, [SLOTS, BLOCK], shared)
    for slot in gl.static_range(SLOTS):
        memory.index(slot).store((lanes + slot).to(gl.float32))
    total = memory.index(0).load(layout)  # here, so that the loop needs no barrier
    for time in range(times):
        total += memory.index(time % SLOTS).load(layout)
    gl.store(sink + gl.program_id(0) * BLOCK + lanes, total)
