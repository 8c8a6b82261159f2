"""Choose the blocks of triton_flash for this GPU, and write them to the table that it reads.

`python -m tiled_attention.tune` tries every candidate that compiles and fits shared memory. Each
must fill a poisoned output and agree with FP64 on fresh inputs before it is timed; the candidates
that are right are timed interleaved, causal and not.
"""

import argparse
import itertools
import math
import multiprocessing
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention.cases import Case
from tiled_attention.device_clock import DeviceClock
from tiled_attention.errors import StepError
from tiled_attention.gate import truth
from tiled_attention.gpu_device import require_idle
from tiled_attention.implementations.triton_flash import capability, forward
from tiled_attention.implementations.tuned import TABLE_FILE, Blocks, table
from tiled_attention.machine import require_gpu, usable_cores
from tiled_attention.offline import SHARED_BYTES, compiled, resources
from tiled_attention.timing import exclusive, interleaved

DTYPES = {2: "bfloat16", 4: "float32"}
TOKENS, HIDDEN, LENGTH = 16384, 2048, 4096
# Ragged, and several blocks long.
JUDGED = {"heads": 2, "heads_kv": 2, "length_q": 300, "length_kv": 429}


def candidates(head_dim: int) -> Iterator[Blocks]:
    """Yield every combination worth compiling for a padded head_dim."""
    for block_m, block_n, warps, stages in itertools.product(
        (32, 64, 128), (16, 32, 64, 128), (4, 8), (1, 2, 3, 4)
    ):
        if block_m * head_dim >= warps * 512 and block_m >= block_n // 2:
            yield Blocks(block_m, block_n, warps, stages)


def compiles(generation: int, dtype: str, head_dim: int, blocks: Blocks) -> bool:
    """Tell whether both kernels compile and fit shared memory."""
    for causal in (False, True):
        try:
            found = resources(compiled(generation, dtype, head_dim, causal, blocks))
        except Exception:  # whatever the compiler raises, this one is out
            return False
        if found["shared_bytes"] > SHARED_BYTES[generation]:
            return False
    return True


def is_right(dtype: str, head_dim: int, blocks: Blocks, seed: int) -> bool:
    """Tell whether the blocks pass the gate on fresh inputs, every output element written."""
    for causal in (False, True):
        case = Case("tune", dtype=dtype, head_dim=head_dim, causal=causal, seed=seed, **JUDGED)  # type: ignore[arg-type]
        tensors = case.tensors("cuda")
        output, _ = forward(*tensors, causal=causal, blocks=blocks, poison=math.nan)
        if not truth(*tensors, causal=causal, mask=None).judge(output).passed:
            return False
    return True


def timed(dtype: str, head_dim: int, right: list[Blocks], rounds: int) -> pd.Series:
    """Return each candidate's time relative to the fastest: geometric mean over causal or not."""
    clock = DeviceClock()
    logs = []
    for causal in (False, True):
        heads = HIDDEN // head_dim
        case = Case(
            "tune", dtype=dtype, batch=TOKENS // LENGTH, heads=heads, heads_kv=heads,
            length_q=LENGTH, length_kv=LENGTH, head_dim=head_dim, causal=causal,
        )  # fmt: skip
        functions = {
            str(number): partial(forward, causal=causal, blocks=blocks)
            for number, blocks in enumerate(right)
        }

        def inputs(number: int, case: Case = case) -> tuple[torch.Tensor, ...]:
            return replace(case, seed=number).tensors("cuda")

        with tqdm(disable=True) as progress:
            samples = interleaved(
                functions, inputs, clock=clock,
                min_rounds=rounds, max_rounds=rounds, seconds=1.0, progress=progress,
            )  # fmt: skip
        medians = pd.DataFrame(samples).groupby("name")["ms"].median()
        logs.append((medians / medians.min()).map(math.log))
    mean = sum(logs) / len(logs)
    return mean.map(math.exp).rename(index=int).sort_values()


def tune(generation: int, element_bytes: int, head_dim: int, rounds: int) -> dict[str, Any]:
    """Return the table's row for one padded head_dim; prints the five fastest candidates.

    Raises:
        StepError: no candidate is right.
    """
    dtype = DTYPES[element_bytes]
    tried = list(candidates(head_dim))
    fresh = multiprocessing.get_context("spawn")  # a fork would share CUDA's state
    with ProcessPoolExecutor(usable_cores(), fresh) as pool:
        fits = list(
            pool.map(
                compiles, *zip(*((generation, dtype, head_dim, it) for it in tried), strict=True)
            )
        )
    compiled_well = [it for it, fit in zip(tried, fits, strict=True) if fit]
    seed = int(torch.randint(2**31, ()))
    right = [it for it in compiled_well if is_right(dtype, head_dim, it, seed)]
    print(f"{dtype}, head_dim {head_dim}: {len(tried)} candidates, {len(compiled_well)} fit, "
          f"{len(right)} are right")  # fmt: skip
    if not right:
        raise StepError(f"no candidate for {dtype}, head_dim {head_dim} is right")
    order = timed(dtype, head_dim, right, rounds)
    for number, ratio in order.head(5).items():
        print(f"  {ratio:.3f} {right[number]}", flush=True)
    return {
        "capability": generation,
        "head_dim": head_dim,
        "element_bytes": element_bytes,
        **right[order.index[0]]._asdict(),
    }


def write(rows: list[dict[str, Any]]) -> None:
    """Put the rows into the table, in place of those of the same generation and size."""
    key = ("capability", "head_dim", "element_bytes")
    merged = {tuple(row[name] for name in key): row for row in [*table(), *rows]}
    head = [line for line in TABLE_FILE.read_text().splitlines() if line.startswith("#")]
    body = [
        "- {" + ", ".join(f"{name}: {value}" for name, value in row.items()) + "}"
        for _, row in sorted(merged.items(), key=lambda it: (-it[0][0], it[0][2], it[0][1]))
    ]
    TABLE_FILE.write_text("\n".join([*head, *body]) + "\n")


def main() -> None:
    """Tune for the GPU that is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--head-dims", type=int, nargs="+", choices=(64, 128, 256),
                        default=[64, 128, 256])  # fmt: skip
    parser.add_argument("--element-bytes", type=int, nargs="+", choices=(2, 4), default=[2, 4])
    parser.add_argument("--rounds", type=int, default=15)
    chosen = parser.parse_args()
    try:
        require_gpu()
        require_idle()
        here = capability(torch.device("cuda", 0))
        generation = max(it for it in (80, 90, 100) if it <= here)
        with exclusive("gpu"):
            rows = [
                tune(generation, element_bytes, head_dim, chosen.rounds)
                for element_bytes in chosen.element_bytes
                for head_dim in chosen.head_dims
            ]
    except StepError as error:
        sys.exit(f"error: {error}")
    write(rows)
    print(f"written to {TABLE_FILE.name}")


if __name__ == "__main__":
    main()
