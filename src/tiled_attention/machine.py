"""This machine's cores and memory, as the steps use them."""

import contextlib
import os
from pathlib import Path

import psutil

SPARE = 0.9  # of the free memory; the rest is the system's and the reference's
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
CGROUP_USED = Path("/sys/fs/cgroup/memory.current")


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def available_bytes() -> int:
    """Return the memory that can be used without swapping, container limits included."""
    free = psutil.virtual_memory().available
    with contextlib.suppress(OSError, ValueError):  # no cgroup, or no limit ("max")
        free = min(free, int(CGROUP_LIMIT.read_text()) - int(CGROUP_USED.read_text()))
    return int(free * SPARE)
