"""One shape timed: every implementation that may be, interleaved, on the same fresh inputs.

An implementation's ratio to naive is taken round by round. One that failed the gate, does not
support the shape or would not fit is listed with the reason instead, and so is a shape that
would take too long.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention.cases import Case
from tiled_attention.implementations import Attention
from tiled_attention.judging import case_columns, too_large
from tiled_attention.statistics import NO_INTERVAL, median_interval, paired_ratios
from tiled_attention.timing import Timed, TooSlowError, interleaved

BASELINE = "naive"
# What a timed shape shares with the case that judged it.
JUDGED_BY = ("dtype", "batch", "heads", "length_q", "head_dim", "causal", "block_size")


def time_shape(
    case: Case,
    implementations: Mapping[str, Attention],
    names: Mapping[str, str],
    verdicts: pd.DataFrame,
    chosen: Mapping[str, Any],
    progress: tqdm,
    *,
    device: str = "cpu",
    yardsticks: Mapping[str, Timed] | None = None,
    **timing: Any,
) -> tuple[list[dict[str, Any]], pd.DataFrame]:
    """Time one shape: its rows of the result, and its raw samples.

    `names` gives each key of `implementations` its name in the verdicts and the result.
    `yardsticks` are timed in the same rounds, and stand in the samples alone; `timing` is passed
    on to `interleaved`.
    """
    sampling = dict(chosen["sampling"])
    confidence, resamples = sampling.pop("confidence"), sampling.pop("resamples")
    status = {
        key: why_not_timed(names[key], implementation, case, verdicts, device)
        for key, implementation in implementations.items()
    }
    timed = {key: value for key, value in implementations.items() if status[key] == "ok"}
    functions = {
        key: lambda *tensors, call=value: call(*tensors, causal=case.causal)
        for key, value in timed.items()
    }
    functions |= (yardsticks or {}) if timed else {}

    def fresh_inputs(number: int) -> tuple[torch.Tensor, ...]:
        return replace(case, seed=case.seed + number).tensors(device)

    samples = []
    try:
        if timed:
            samples = interleaved(functions, fresh_inputs, progress=progress, **sampling, **timing)
    except TooSlowError as reason:
        limit = f"max_seconds is {timing['max_seconds']:g}"
        status |= dict.fromkeys(timed, f"skipped: {reason}, {limit}")
        timed = {}
    raw = pd.DataFrame(samples, columns=["name", "round", "position", "elapsed_s", "ms"])
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
        implementation=raw["name"].map(lambda key: names.get(key, key)),
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


def why_not_timed(
    name: str,
    implementation: Attention,
    case: Case,
    verdicts: pd.DataFrame,
    device: str = "cpu",
) -> str:
    """Return `ok`, or why this implementation gets no number for this case."""
    tensors = case.without_data(device)
    reason = implementation.unsupported(*tensors, causal=case.causal, mask=None)
    if reason is not None:
        return f"skipped: {reason}"
    reason = too_large(implementation, case, device=device)
    if reason is not None:
        return f"skipped: {reason}"
    own = verdicts[verdicts["implementation"] == name]
    failed = own[own["passed"] == False]  # noqa: E712  (missing for skipped cases)
    if len(failed):
        return f"not timed: failed correctness in {len(failed)} of {len(own)} cases"
    shape = case_columns(case, implementation)
    same = own["case"].str.startswith("timed")
    for column in JUDGED_BY:
        if shape[column] is not None:
            same &= own[column] == shape[column]
    judged = own[same]
    if not (judged["passed"] == True).any():  # noqa: E712
        found = "; ".join(judged["status"]) or "not among the cases"
        return f"not timed: this shape was not judged ({found})"
    return "ok"
