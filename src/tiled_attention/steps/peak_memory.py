"""Peak memory: what one implementation really holds at once, beside its own account of it.

Every allocation and release that PyTorch's CPU allocator makes during one call is replayed, so
the peak counts all live tensors: the output and every temporary, but not the arguments. Scratch
that the matrix library takes for itself is not seen.
"""

import os
from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from torch.profiler import ProfilerActivity, profile

from tiled_attention.build import build
from tiled_attention.cases import Case
from tiled_attention.implementations import Attention
from tiled_attention.judging import too_large
from tiled_attention.sizes import naive_bytes, output_bytes


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return {"result": one row a length, "account": what is held at the peak, by name}."""
    ((name, chosen),) = options["implementations"].items()
    implementation = build(chosen)
    problem = dict(options["peak_memory"]["problem"])
    heads = problem.pop("heads")
    rows, accounts = [], []
    for length in options["peak_memory"]["lengths"]:
        case = Case(
            "peak", heads=heads, heads_kv=heads, length_q=length, length_kv=length, **problem
        )
        arguments = case.without_data()
        reason = implementation.unsupported(*arguments, causal=case.causal, mask=None)
        account = implementation.peak_bytes(*arguments, causal=case.causal)
        reason = reason or too_large(implementation, case)
        shape = {
            "implementation": name,
            "dtype": case.dtype,
            "batch": case.batch,
            "heads": heads,
            "length": length,
            "head_dim": case.head_dim,
            "causal": case.causal,
            "block_size": getattr(implementation, "block_size", None),
            "threads": torch.get_num_threads(),
        }
        rows.append(
            shape
            | {
                "score_matrix_bytes": naive_bytes(length, heads, case.batch, case.dtype),
                "output_bytes": output_bytes(length, heads, case.batch, case.dtype, case.head_dim),
                "account_bytes": sum(account.values()),
                "measured_bytes": None if reason else peak_bytes(implementation, case),
                "status": f"skipped: {reason}" if reason else "ok",
            }
        )
        accounts += [
            {"implementation": name, "length": length, "held": held, "bytes": size}
            for held, size in account.items()
        ]
    return {"result": pd.DataFrame(rows), "account": pd.DataFrame(accounts)}


def peak_bytes(implementation: Attention, case: Case) -> int:
    """Return the most bytes that live tensors hold during one call, arguments left out."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # or the profiler writes to the terminal
    tensors = case.tensors()
    implementation(*tensors, causal=case.causal)  # lazy initialisation is no part of a call
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        output = implementation(*tensors, causal=case.causal)
    del output
    events = profiler.profiler.kineto_results.events()
    allocations = [event for event in events if event.name() == "[memory]"]
    live = peak = 0
    for event in sorted(allocations, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("peak_memory", measure, __doc__)
