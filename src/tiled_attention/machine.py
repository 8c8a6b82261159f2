"""This machine's cores and memory, as the steps use them."""

import contextlib
import os
from pathlib import Path

import psutil
import torch

from tiled_attention.errors import StepError

SPARE = 0.9  # of the free memory; the rest is the system's and the reference's
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def require_gpu() -> None:
    """Raise StepError where PyTorch finds no CUDA device."""
    if not torch.cuda.is_available():
        raise StepError("this step needs a CUDA device, and PyTorch finds none")


def available_bytes(device: str = "cpu") -> int:
    """Return the memory that can be used without swapping, container limits included."""
    if device == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info()[0] * SPARE)
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):  # no cgroup, or no limit ("max")
        free = min(free, int(CGROUP_LIMIT.read_text()) - int(CGROUP_USED.read_text()))
    return int(free * SPARE)
