"""GPU traffic: bytes between HBM and the chip by hardware counters, beside what theory counts.

Theory is Dao et al. 2022, theorem 2: standard attention moves N d + N^2 elements, up to a factor,
and FlashAttention N^2 d^2 / M, where M is the on-chip memory of one multiprocessor.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd
import torch

from tiled_attention.build import build
from tiled_attention.cases import Case
from tiled_attention.counters import count
from tiled_attention.errors import StepError
from tiled_attention.gpu_device import device_of, require_idle
from tiled_attention.gpu_shapes import timed_cases
from tiled_attention.timing import exclusive

INTERPRETED = "not measured: interpreted, which moves nothing on a GPU"


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return {"result": one row an implementation and length}.

    Where there is no Nsight Compute, or it may not read the counters, the status says so.

    Raises:
        StepError: there is no CUDA device, or it is not idle.
    """
    chosen = options["gpu_traffic"]
    device = device_of(options)
    implementations = {
        name: values
        for name, values in options["implementations"].items()
        if name in chosen["implementations"]
    }
    cases = [
        case
        for case in timed_cases({**chosen, "problem": {"heads": 1}, "problem_lengths": []})
        if case.length_q in chosen["lengths"]
        and case.head_dim == chosen["head_dim"]
        and not case.causal
    ]
    wanted = [(name, case) for case in cases for name in implementations]
    if device != "cuda":
        rows = [columns(name, case) | {"status": INTERPRETED} for name, case in wanted]
        return {"result": pd.DataFrame(rows)}
    calls = [{"options": implementations[name], "case": asdict(case)} for name, case in wanted]
    with exclusive("gpu"):
        require_idle()
        on_chip = torch.cuda.get_device_properties().shared_memory_per_multiprocessor
        try:
            counted = [{**it, "status": "ok"} for it in count(calls)]
        except StepError as error:
            counted = [{"status": f"not measured: {error}"}] * len(calls)
    rows = []
    for (name, case), found in zip(wanted, counted, strict=True):
        block_size = getattr(build(implementations[name]), "block_size", None)
        rows.append(
            columns(name, case) | {"block_size": block_size} | theory(case, on_chip) | found
        )
    return {"result": pd.DataFrame(rows)}


def columns(name: str, case: Case) -> dict[str, Any]:
    """Return which call a row is about."""
    return {
        "implementation": name,
        "dtype": case.dtype,
        "batch": case.batch,
        "heads": case.heads,
        "length": case.length_q,
        "head_dim": case.head_dim,
        "causal": case.causal,
    }


def theory(case: Case, on_chip_bytes: int) -> dict[str, int]:
    """Return the least possible bytes, standard attention's and FlashAttention's.

    least: query, key, value and output once each. standard: beside these, scores and
    probabilities written once and read once each. flash: N^2 d^2 / M elements, at least the least.
    """
    size = getattr(torch, case.dtype).itemsize
    heads = case.batch * case.heads
    vectors = 4 * heads * case.length_q * case.head_dim * size
    scores = heads * case.length_q**2 * size
    flash = scores * case.head_dim**2 * size // on_chip_bytes
    return {
        "on_chip_bytes": on_chip_bytes,
        "least_bytes": vectors,
        "standard_bytes": vectors + 4 * scores,
        "flash_bytes": max(vectors, flash),
    }


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("gpu_traffic", measure, __doc__)
