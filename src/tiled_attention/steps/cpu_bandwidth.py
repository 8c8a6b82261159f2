"""CPU bandwidth: how fast cores read a working set, from the first cache to main memory.

Each core sums a vector of its own again and again in one call, so that dispatch does not count:
PyTorch's vectorised sum, hence a lower bound for the first cache.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention.errors import StepError
from tiled_attention.machine import available_bytes, usable_cores
from tiled_attention.rates import summarised
from tiled_attention.timing import exclusive

READ_BYTES = 2**26  # by each core in one sample: some milliseconds


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return "result", one row a working set and number of cores, and the raw "samples".

    `working_set_bytes` is each core's own; rates are of all cores together, in GB/s.
    """
    chosen = options["cpu_bandwidth"]
    cores = sorted({1, usable_cores()})
    sizes = [kib * 1024 for kib in chosen["working_sets_kib"]]
    largest = max(sizes) * max(cores)
    if largest > available_bytes():
        raise StepError(f"cpu_bandwidth.working_sets_kib: needs {largest / 1e9:.1f} GB of memory")
    samples = []
    with (
        exclusive("cpu"),
        ThreadPoolExecutor(max(cores), initializer=torch.set_num_threads, initargs=(1,)) as pool,
        tqdm(total=len(sizes), desc="CPU bandwidth", disable=None) as progress,
    ):
        for size in sizes:
            vectors = [torch.randn(size // 4) for _ in range(max(cores))]
            for number in range(-1, chosen["samples"]):
                for count in cores:
                    seconds, read = read_all(pool, vectors[:count])
                    if number >= 0:  # the first round warms the caches
                        samples.append(
                            {
                                "cores": count,
                                "working_set_bytes": size,
                                "sample": number,
                                "gb_per_s": read / seconds / 1e9,
                            }
                        )
            progress.update()
    raw = pd.DataFrame(samples)
    return {"result": summarised(raw, ["cores", "working_set_bytes"], chosen), "samples": raw}


def read_all(pool: ThreadPoolExecutor, vectors: list[torch.Tensor]) -> tuple[float, int]:
    """Return the seconds in which each of the threads read its vector, and the bytes of all."""
    size = vectors[0].nbytes
    times = max(1, READ_BYTES // size)
    start = time.perf_counter()
    list(pool.map(lambda vector: vector.expand(times, -1).sum(1), vectors))
    return time.perf_counter() - start, size * times * len(vectors)


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("cpu_bandwidth", measure, __doc__)
