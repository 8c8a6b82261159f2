"""Device time by CUDA events, with a cold L2 cache, and the state of the GPU after each round."""

import re
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pynvml
import torch
from torch.profiler import ProfilerActivity, profile

FLUSHED_BYTES = 2**30


class DeviceClock:
    """Times one call between two CUDA events.

    Before each call a large buffer is overwritten: that empties the L2 cache, and takes the GPU
    long enough (half a millisecond) for the host to queue what a fused call launches, so that its
    launch latency is hidden. An eager loop of many launches shows its own.
    """

    def __init__(self) -> None:
        """Take the buffer, a GiB or an eighth of the memory."""
        size = min(FLUSHED_BYTES, torch.cuda.mem_get_info()[1] // 8)
        self.buffer = torch.empty(size, dtype=torch.int8, device="cuda")

    def __call__(self, function: Callable[..., Any], inputs: tuple[Any, ...]) -> float:
        """Return the milliseconds that the GPU took for function(*inputs)."""
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        for _ in range(2):
            self.buffer.zero_()
        start.record()
        output = function(*inputs)
        end.record()
        end.synchronize()
        del output
        return float(start.elapsed_time(end))


def device_handle() -> Any:
    """Return NVML's handle of the GPU that CUDA calls the current one; NVML must be open."""
    return pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties().uuid}")


def peak_bytes(function: Callable[..., Any], inputs: tuple[Any, ...]) -> int:
    """Return the most bytes that live tensors hold during one call, arguments left out."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    output = function(*inputs)
    torch.cuda.synchronize()
    del output
    return int(torch.cuda.max_memory_allocated() - before)


def host_ms(function: Callable[..., Any], inputs: tuple[Any, ...]) -> float:
    """Return the milliseconds until the call returns to the host, the GPU idle: a median of 5."""
    times = []
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        output = function(*inputs)
        times.append((time.perf_counter() - start) * 1e3)
        del output
    torch.cuda.synchronize()
    return median(times)


def longest_kernel(function: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[str, int]:
    """Return the name of the kernel that took most of one call, and the number of launches."""
    with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as profiler:
        function(*inputs)
        torch.cuda.synchronize()
    kernels = [
        event
        for event in profiler.events()
        if event.device_type.name == "CUDA" and not event.name.startswith(("Memset", "Memcpy"))
    ]
    if not kernels:
        return "", 0
    by_name: dict[str, float] = {}
    for event in kernels:
        by_name[event.name] = by_name.get(event.name, 0.0) + event.device_time_total
    longest = max(by_name, key=lambda name: by_name[name])
    return re.split(r"[<(]", longest.removeprefix("void "))[0], len(kernels)
