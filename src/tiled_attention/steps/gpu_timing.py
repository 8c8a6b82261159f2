"""GPU timing: every implementation that passed the gate there, on shapes of equal work.

Device time by CUDA events with a cold L2, interleaved, on fresh inputs; a square matrix product
runs in the same rounds, so that the share of the device's own matrix rate is taken pair by pair.
Clocks, power, temperature and throttling are read after every round.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention import gpu
from tiled_attention.build import build
from tiled_attention.cases import Case
from tiled_attention.device_clock import (
    DeviceClock,
    device_handle,
    host_ms,
    longest_kernel,
    peak_bytes,
)
from tiled_attention.gpu_device import device_of, require_idle
from tiled_attention.gpu_shapes import timed_cases
from tiled_attention.implementations import Attention
from tiled_attention.reference import full_precision
from tiled_attention.statistics import median_interval
from tiled_attention.timed_shape import time_shape, why_not_timed
from tiled_attention.timing import exclusive

PRODUCT = "matrix product"
SHAPE = ("dtype", "batch", "heads", "length", "head_dim", "causal")
INTERPRETED = "not timed: interpreted, which tells nothing of a GPU's time"
NUMBERS = (
    "median_ms",
    "ci_low_ms",
    "ci_high_ms",
    "ratio_to_naive",
    "ratio_ci_low",
    "ratio_ci_high",
    "tflops",
)

log = logging.getLogger(__name__)


def measure(
    options: Mapping[str, Any], inputs: Mapping[str, Mapping[str, pd.DataFrame]]
) -> dict[str, pd.DataFrame]:
    """Return "result", one row an implementation and shape, and what stands behind it.

    "samples": every raw timing; "rates": the matrix product at each shape; "conditions": the
    GPU's state after each round. Under Triton's interpreter nothing is timed, and "result" says
    so in each row.

    Raises:
        StepError: there is no CUDA device, or it is not idle.
    """
    device = device_of(options)
    chosen = options["gpu_timing"]
    every = {name: build(values) for name, values in options["implementations"].items()}
    cases = list(timed_cases(chosen))
    verdicts = inputs["gpu_correctness"]["result"]
    if device != "cuda":
        return {"result": pd.DataFrame(untimed(cases, every, verdicts, device))}
    kernels: dict[tuple[Any, ...], tuple[str, int]] = {}
    results, samples, rates, conditions = [], [], [], []
    total = len(cases) * chosen["sampling"]["min_rounds"]
    with (
        exclusive("gpu"),
        gpu.nvml(),
        full_precision(),
        tqdm(total=total, desc="gpu timing", disable=None) as progress,
    ):
        require_idle()
        products = {each: matrix_product(each, chosen) for each in {it.dtype for it in cases}}
        clock = DeviceClock()
        handle = device_handle()
        for case in cases:
            shape = {name: getattr(case, name, case.length_q) for name in SHAPE}

            def note_state(number: int, shape: Mapping[str, Any] = shape) -> None:
                conditions.append({**shape, "round": number, **gpu.state(handle)})

            rows, raw = time_shape(
                case,
                every,
                {name: name for name in every},
                verdicts,
                chosen,
                progress,
                device="cuda",
                yardsticks={PRODUCT: products[case.dtype]},
                clock=clock,
                after_round=note_state,
            )
            for row in rows:
                row |= {"threads": None, **device_columns(row, raw, chosen)}
                if row["status"] == "ok":
                    row |= call_columns(every[row["implementation"]], case, kernels)
            results += rows
            samples.append(raw.assign(**shape))
            rates.append({**shape, **rate_columns(raw, chosen)})
            log.info("%s: %d samples", shape, len(raw))
    return {
        "result": pd.DataFrame(results),
        "samples": pd.concat(samples, ignore_index=True),
        "rates": pd.DataFrame(rates),
        "conditions": pd.DataFrame(conditions),
    }


def untimed(
    cases: Sequence[Case],
    every: Mapping[str, Attention],
    verdicts: pd.DataFrame,
    device: str,
) -> Iterator[dict[str, Any]]:
    """Yield a row without any number for each shape and implementation, with the reason."""
    for case in cases:
        shape = {name: getattr(case, name, case.length_q) for name in SHAPE}
        for name, implementation in every.items():
            status = why_not_timed(name, implementation, case, verdicts, device)
            if status == "ok":
                status = INTERPRETED
            block_size = getattr(implementation, "block_size", None)
            yield {
                "implementation": name,
                **shape,
                "block_size": block_size,
                "threads": None,
                "samples": 0,
                **dict.fromkeys(NUMBERS),
                "status": status,
            }


def matrix_product(dtype: str, chosen: Mapping[str, Any]) -> Callable[..., torch.Tensor]:
    """Return a function that multiplies two random square matrices of `matrix_size`."""
    size = chosen["matrix_size"]
    left, right = (
        torch.randn(size, size, device="cuda").to(getattr(torch, dtype)) for _ in range(2)
    )
    return lambda *_: left @ right


def rate_columns(raw: pd.DataFrame, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the matrix product's rate at one shape, in TFLOP/s, with its interval."""
    times = raw.loc[raw["implementation"] == PRODUCT, "ms"].to_numpy()
    if not len(times):
        return {"samples": 0, "matrix_tflops": None}
    rates = 2 * chosen["matrix_size"] ** 3 / times / 1e9
    sampling = chosen["sampling"]
    low, high = median_interval(rates, sampling["confidence"], sampling["resamples"])
    return {
        "samples": len(rates),
        "matrix_tflops": float(np.median(rates)),
        "matrix_tflops_low": low,
        "matrix_tflops_high": high,
    }


def device_columns(
    row: Mapping[str, Any], raw: pd.DataFrame, chosen: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the share of the matrix rate, round by round: its median and interval."""
    if row["status"] != "ok":
        return {}
    by_round = raw.pivot(index="round", columns="implementation", values="ms")
    own = row["tflops"] * row["median_ms"] / by_round[row["implementation"]]
    product = 2 * chosen["matrix_size"] ** 3 / by_round[PRODUCT] / 1e9
    shares = (own / product).to_numpy()
    sampling = chosen["sampling"]
    low, high = median_interval(shares, sampling["confidence"], sampling["resamples"])
    return {
        "matrix_share": float(np.median(shares)),
        "matrix_share_low": low,
        "matrix_share_high": high,
    }


def call_columns(
    implementation: Attention, case: Case, kernels: dict[tuple[Any, ...], tuple[str, int]]
) -> dict[str, Any]:
    """Return measured and accounted peak, and the kernel that ran longest in one call.

    `kernels` keeps what was seen, one look for each implementation, dtype, head_dim and causal.
    """
    tensors = case.tensors("cuda")

    def call(*arguments: torch.Tensor) -> torch.Tensor:
        return implementation(*arguments, causal=case.causal)

    key = (implementation, case.dtype, case.head_dim, case.causal)
    if key not in kernels:
        kernels[key] = longest_kernel(call, tensors)
    account = implementation.peak_bytes(*tensors, causal=case.causal)
    return {
        "peak_bytes": peak_bytes(call, tensors),
        "account_bytes": sum(account.values()),
        "host_ms": host_ms(call, tensors),
        "kernel": kernels[key][0],
        "launches": kernels[key][1],
    }


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("gpu_timing", measure, __doc__)
