"""GPU bandwidth: how fast all multiprocessors read a working set, from shared memory to HBM.

One program a multiprocessor reads data of its own again and again; device time by CUDA events.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention.gpu_device import device_of, require_idle
from tiled_attention.rates import summarised
from tiled_attention.timing import exclusive

READ_BYTES = 2**33  # by all together in one sample: some milliseconds of HBM
INTERPRETED = "not measured: interpreted, which tells nothing of a GPU's memory"
SHARED, CACHED = "shared memory", "device memory and its caches"


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return "result", one row a working set and way to read it, and the raw "samples".

    `working_set_bytes` is that of all multiprocessors together; rates are in GB/s.

    Raises:
        StepError: there is no CUDA device, or it is not idle.
    """
    chosen = options["gpu_bandwidth"]
    if device_of(options) != "cuda":
        return {"result": pd.DataFrame([{"read_from": SHARED, "status": INTERPRETED}])}
    samples = []
    with (
        exclusive("gpu"),
        tqdm(total=chosen["samples"], desc="GPU bandwidth", disable=None) as progress,
    ):
        require_idle()
        readers = prepared(chosen)
        for number in range(-1, chosen["samples"]):
            for (read_from, size), (launch, read) in readers.items():
                rate = read / elapsed_seconds(launch) / 1e9
                if number >= 0:  # the first round compiles
                    samples.append(
                        {
                            "read_from": read_from,
                            "working_set_bytes": size,
                            "sample": number,
                            "gb_per_s": rate,
                        }
                    )
            progress.update(number >= 0)
    raw = pd.DataFrame(samples)
    return {"result": summarised(raw, ["read_from", "working_set_bytes"], chosen), "samples": raw}


def prepared(
    chosen: Mapping[str, Any],
) -> dict[tuple[str, int], tuple[Callable[[], Any], int]]:
    """Return, by way to read and bytes, a function that launches it and the bytes it reads."""
    from tiled_attention.bandwidth_kernels import BLOCK, SLOTS, WARPS, read_memory, read_shared

    programs = torch.cuda.get_device_properties().multi_processor_count
    sink = torch.empty(programs * BLOCK, device="cuda")
    sizes = [kib * 1024 for kib in chosen["working_sets_kib"]]  # of each multiprocessor
    source = torch.randn(programs * max(sizes) // 4, device="cuda")
    block_bytes = 4 * BLOCK
    times = READ_BYTES // (block_bytes * programs)
    readers: dict[tuple[str, int], tuple[Callable[[], Any], int]] = {
        (SHARED, SLOTS * block_bytes * programs): (
            partial(
                read_shared[(programs,)], sink, times, SLOTS=SLOTS, BLOCK=BLOCK, num_warps=WARPS
            ),
            times * block_bytes * programs,
        )
    }
    for size in sizes:
        times = max(1, READ_BYTES // (size * programs))
        readers[CACHED, size * programs] = (
            partial(
                read_memory[(programs,)], source, sink, size // 4, times, BLOCK=BLOCK,
                num_warps=WARPS,
            ),
            times * size * programs,
        )  # fmt: skip
    return readers


def elapsed_seconds(launch: Callable[[], Any]) -> float:
    """Return the device time of one launch."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    launch()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("gpu_bandwidth", measure, __doc__)
