"""CPU timing: Table 3, at longer lengths too, and the cost of one more block.

Every implementation that passed the gate is timed on the same fresh inputs, interleaved; its
ratio to naive is taken round by round. One that failed, does not support the shape or would not
fit is listed with the reason instead, and so is a length that would take too long.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention.build import build
from tiled_attention.cases import Case
from tiled_attention.errors import StepError
from tiled_attention.machine import usable_cores
from tiled_attention.timed_shape import time_shape
from tiled_attention.timing import exclusive

log = logging.getLogger(__name__)


def measure(
    options: Mapping[str, Any], inputs: Mapping[str, Mapping[str, pd.DataFrame]]
) -> dict[str, pd.DataFrame]:
    """Return {"result": one row an implementation and length, "samples": every raw timing}."""
    chosen = options["cpu_timing"]
    verdicts = inputs["correctness"]["result"]
    threads = use_threads(chosen["threads"])
    problem = dict(chosen["problem"])
    heads = problem.pop("heads")
    shape = Case("timed", heads=heads, heads_kv=heads, seed=chosen["seed"], **problem)
    every = {name: build(values) for name, values in options["implementations"].items()}
    sweep = chosen["block_sweep"]
    groups = [("lengths", length, every) for length in chosen["lengths"]]
    if sweep["block_sizes"]:
        swept = options["implementations"][sweep["implementation"]]
        blocks = {f"block {size}": build(swept, size) for size in sweep["block_sizes"]}
        groups.append(("block sweep", sweep["length"], blocks))
    results, samples = [], []
    total = len(groups) * chosen["sampling"]["min_rounds"]
    with exclusive("cpu"), tqdm(total=total, desc="cpu timing", disable=None) as progress:
        for series, length, implementations in groups:
            case = replace(shape, length_q=length, length_kv=length)
            names = dict.fromkeys(implementations, sweep["implementation"])
            if series == "lengths":
                names = {name: name for name in implementations}
            rows, raw = time_shape(
                case,
                implementations,
                names,
                verdicts,
                chosen,
                progress,
                max_seconds=chosen["max_seconds"],
            )
            for row in rows:
                results.append({"series": series, "threads": threads, **row})
            samples.append(raw.assign(series=series, length=length, threads=threads))
            log.info("%s, length %d: %d samples", series, length, len(raw))
    return {"result": pd.DataFrame(results), "samples": pd.concat(samples, ignore_index=True)}


def use_threads(wanted: int | None) -> int:
    """Set torch's threads, and return the number it really uses.

    Raises:
        StepError: so many threads cannot run here, or torch uses another number.
    """
    usable = usable_cores()
    threads = usable if wanted is None else wanted
    if threads > usable:
        raise StepError(f"cpu_timing.threads = {threads}: this process may use {usable} cores")
    limit = os.environ.get("OMP_THREAD_LIMIT", "")
    if limit.isdigit() and int(limit) < threads:
        raise StepError(f"cpu_timing.threads = {threads}: OMP_THREAD_LIMIT is {limit}")
    torch.set_num_threads(threads)
    if torch.get_num_threads() != threads:
        raise StepError(
            f"cpu_timing.threads = {threads}: torch uses {torch.get_num_threads()} threads"
        )
    return threads


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("cpu_timing", measure, __doc__)
