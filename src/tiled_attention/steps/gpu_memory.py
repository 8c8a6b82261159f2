"""GPU memory: the length at which naive attention really runs out, found by trying.

Lengths are doubled until one fails, then halved between the last that ran and the first that did
not. Each failure gives its memory back, and the next length runs.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch

from tiled_attention.cases import Case
from tiled_attention.gpu_device import device_of, require_idle
from tiled_attention.implementations.naive import Naive
from tiled_attention.sizes import naive_bytes
from tiled_attention.timing import exclusive

INTERPRETED = "not measured: interpreted, which tells nothing of a GPU's memory"


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return "result", one row a number of heads, and "attempts", one row a length tried.

    Raises:
        StepError: there is no CUDA device, or it is not idle.
    """
    chosen = options["gpu_memory"]
    if device_of(options) != "cuda":
        rows = [{"implementation": "naive", "heads": it} for it in chosen["heads"]]
        return {"result": pd.DataFrame(rows).assign(status=INTERPRETED)}
    results, attempts = [], []
    with exclusive("gpu"):
        require_idle()
        total = torch.cuda.mem_get_info()[1]
        for heads in chosen["heads"]:
            tried = pd.DataFrame(tries(chosen, heads))
            ran = tried[tried["ran"]].sort_values("length").iloc[-1]
            results.append(
                {
                    "implementation": "naive",
                    "dtype": chosen["dtype"],
                    "batch": chosen["batch"],
                    "heads": heads,
                    "head_dim": chosen["head_dim"],
                    "memory_bytes": total,
                    "largest_length": int(ran["length"]),
                    "first_length_out_of_memory": int(tried[~tried["ran"]]["length"].min()),
                    "peak_bytes": int(ran["peak_bytes"]),
                    "score_matrix_bytes": naive_bytes(
                        int(ran["length"]), heads, chosen["batch"], chosen["dtype"]
                    ),
                    "account_bytes": int(ran["account_bytes"]),
                    "status": "ok",
                }
            )
            attempts.append(tried.assign(heads=heads))
    return {"result": pd.DataFrame(results), "attempts": pd.concat(attempts, ignore_index=True)}


def tries(chosen: Mapping[str, Any], heads: int) -> list[dict[str, Any]]:
    """Return every length tried, in order: whether it ran, and its peak."""
    step = chosen["step"]
    rows = [attempt(chosen, heads, step)]
    while rows[-1]["ran"]:
        rows.append(attempt(chosen, heads, 2 * rows[-1]["length"]))
    low, high = rows[-1]["length"] // 2, rows[-1]["length"]
    while high - low > step:
        middle = (low + high) // 2 // step * step
        rows.append(attempt(chosen, heads, middle))
        low, high = (middle, high) if rows[-1]["ran"] else (low, middle)
    return rows


def attempt(chosen: Mapping[str, Any], heads: int, length: int) -> dict[str, Any]:
    """Return whether naive attention of that length runs, and what live tensors held at most."""
    case = Case(
        "memory",
        dtype=chosen["dtype"],
        batch=chosen["batch"],
        heads=heads,
        heads_kv=heads,
        length_q=length,
        length_kv=length,
        head_dim=chosen["head_dim"],
    )
    account = sum(Naive().peak_bytes(*case.without_data("cuda"), causal=False).values())
    row = {"length": length, "ran": False, "account_bytes": account, "peak_bytes": None}
    tensors = case.tensors("cuda")
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    try:
        Naive()(*tensors)
        torch.cuda.synchronize()
        row |= {"ran": True, "peak_bytes": torch.cuda.max_memory_allocated() - before}
    except torch.OutOfMemoryError:
        pass
    torch.cuda.empty_cache()
    return row


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("gpu_memory", measure, __doc__)
