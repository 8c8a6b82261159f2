"""CPU timing: Table 3, at longer lengths too, and the cost of one more block.

Every implementation that passed the gate is timed on the same fresh inputs, interleaved; its
ratio to naive is taken round by round. One that failed, does not support the shape or would not
fit is listed with the reason instead.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention.build import build
from tiled_attention.cases import Case
from tiled_attention.errors import StepError
from tiled_attention.implementations import Attention
from tiled_attention.judging import too_large
from tiled_attention.machine import usable_cores
from tiled_attention.statistics import NO_INTERVAL, median_interval, paired_ratios
from tiled_attention.timing import exclusive, interleaved

BASELINE = "naive"
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
            rows, raw = time_group(case, implementations, names, verdicts, chosen, progress)
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


def time_group(
    case: Case,
    implementations: Mapping[str, Attention],
    names: Mapping[str, str],
    verdicts: pd.DataFrame,
    chosen: Mapping[str, Any],
    progress: tqdm,
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """Time one shape: its rows of the result, and its raw samples.

    `names` gives each key of `implementations` its name in the verdicts and the result.
    """
    sampling = dict(chosen["sampling"])
    confidence, resamples = sampling.pop("confidence"), sampling.pop("resamples")
    status = {
        key: why_not_timed(names[key], implementation, case, verdicts)
        for key, implementation in implementations.items()
    }
    timed = {key: value for key, value in implementations.items() if status[key] == "ok"}
    functions = {
        key: lambda *tensors, call=value: call(*tensors, causal=case.causal)
        for key, value in timed.items()
    }

    def fresh_inputs(number: int) -> tuple[torch.Tensor, ...]:
        return replace(case, seed=case.seed + number).tensors()

    raw = pd.DataFrame(
        interleaved(functions, fresh_inputs, progress=progress, **sampling) if timed else [],
        columns=["name", "round", "position", "elapsed_s", "ms"],
    )
    by_round = raw.pivot(index="round", columns="name", values="ms")
    rows = []
    for key, implementation in implementations.items():
        row = {
            "implementation": names[key],
            "dtype": case.dtype,
            "batch": case.batch,
            "heads": case.heads,
            "length": case.length_q,
            "head_dim": case.head_dim,
            "causal": case.causal,
            "block_size": getattr(implementation, "block_size", None),
            "samples": len(by_round) if key in timed else 0,
            "status": status[key],
        }
        if key in timed:
            row |= summarise(by_round, key, case, confidence, resamples)
        rows.append(row)
    raw = raw.assign(
        implementation=raw["name"].map(names),
        block_size=raw["name"].map(
            {key: getattr(value, "block_size", None) for key, value in timed.items()}
        ),
    )
    return rows, raw.drop(columns="name")


def summarise(
    by_round: pd.DataFrame, name: str, case: Case, confidence: float, resamples: int
) -> dict[str, float]:
    """Return median and ratio with their intervals, and the achieved TFLOP/s."""
    times = by_round[name].to_numpy()
    low, high = median_interval(times, confidence, resamples)
    median = float(np.median(times))
    ratio, (ratio_low, ratio_high) = float("nan"), NO_INTERVAL
    if BASELINE in by_round:
        ratios = paired_ratios(times, by_round[BASELINE].to_numpy())
        ratio = float(np.median(ratios))
        ratio_low, ratio_high = median_interval(ratios, confidence, resamples)
    return {
        "median_ms": median,
        "ci_low_ms": low,
        "ci_high_ms": high,
        "ratio_to_naive": ratio,
        "ratio_ci_low": ratio_low,
        "ratio_ci_high": ratio_high,
        "tflops": case.flop() / (median * 1e-3) / 1e12,
    }


def why_not_timed(name: str, implementation: Attention, case: Case, verdicts: pd.DataFrame) -> str:
    """Return `ok`, or why this implementation gets no number for this case."""
    tensors = case.without_data()
    reason = implementation.unsupported(*tensors, causal=case.causal, mask=None)
    if reason is not None:
        return f"skipped: {reason}"
    reason = too_large(implementation, case)
    if reason is not None:
        return f"skipped: {reason}"
    own = verdicts[verdicts["implementation"] == name]
    failed = own[own["passed"] == False]  # noqa: E712  (missing for skipped cases)
    if len(failed):
        return f"not timed: failed correctness in {len(failed)} of {len(own)} cases"
    block_size = getattr(implementation, "block_size", None)
    judged = own[
        own["case"].str.startswith("timed")
        & (own["length_q"] == case.length_q)
        & ((own["block_size"] == block_size) if block_size else True)
    ]
    if not (judged["passed"] == True).any():  # noqa: E712
        found = "; ".join(judged["status"]) or "not among the cases"
        return f"not timed: this shape was not judged ({found})"
    return "ok"


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("cpu_timing", measure, __doc__)
