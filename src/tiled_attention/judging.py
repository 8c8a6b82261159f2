"""One implementation on one case: refused, too large, failed, or judged by the gate."""

import logging
import math
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from tiled_attention.cases import Case
from tiled_attention.gate import truth
from tiled_attention.implementations import Attention
from tiled_attention.machine import available_bytes

log = logging.getLogger(__name__)


def case_columns(case: Case, implementation: Attention) -> dict[str, Any]:
    """Return the columns that say which problem a row is about."""
    return {
        "case": case.name,
        "dtype": case.dtype,
        "batch": case.batch,
        "heads": case.heads,
        "heads_kv": case.heads_kv,
        "length_q": case.length_q,
        "length_kv": case.length_kv,
        "head_dim": case.head_dim,
        "causal": case.causal,
        "block_size": getattr(implementation, "block_size", None),
        "seed": case.seed,
    }


def judge(
    implementation: Attention, case: Case, max_tflop: float = math.inf, device: str = "cpu"
) -> dict[str, Any]:
    """Return errors, tolerance, verdict and status of one implementation on one case.

    status is `ok`, `failed: ...` (an exception, a wrong shape or dtype, changed arguments) or
    `skipped: ...`, where `passed` is missing.
    """
    mask = case.mask()
    mask = None if mask is None else mask.to(device)
    reason = implementation.unsupported(*_layout(case, device), causal=case.causal, mask=mask)
    if reason is None:
        reason = too_large(implementation, case, max_tflop, device)
    if reason is not None:
        return {"passed": None, "status": f"skipped: {reason}"}
    tensors = case.tensors(device)
    torch.full_like(tensors[0], math.nan)  # memory that an output never written may be given
    arguments = [*tensors, *([] if mask is None else [mask])]
    before = [tensor.clone() for tensor in arguments]
    try:
        output = implementation(*tensors, causal=case.causal, mask=mask)
    except Exception as error:  # whatever a kernel raises is a failed case
        log.exception("%s raised", case)
        return {"passed": False, "status": f"failed: raised {type(error).__name__}: {error}"}
    if not isinstance(output, Tensor):
        return {"passed": False, "status": f"failed: returned {type(output).__name__}"}
    if output.shape != tensors[0].shape or output.dtype != tensors[0].dtype:
        found = f"{tuple(output.shape)} {output.dtype}"
        return {"passed": False, "status": f"failed: returned {found}, not query's"}
    if not all(map(torch.equal, before, arguments)):
        return {"passed": False, "status": "failed: changed its arguments"}
    judged = slice(-1, None) if case.last_batch_only else slice(None)
    exact = truth(*(tensor[judged] for tensor in tensors), causal=case.causal, mask=mask)
    return asdict(exact.judge(output[judged])) | {"status": "ok"}


def too_large(
    implementation: Attention, case: Case, max_tflop: float = math.inf, device: str = "cpu"
) -> str | None:
    """Return why the case does not fit the device's memory or the work limit, or None."""
    arguments = case.without_data(device)
    held = sum(implementation.peak_bytes(*arguments, causal=case.causal).values())
    held += sum(tensor.nbytes for tensor in arguments)
    free = available_bytes(device)
    if case.last_batch_only:
        case = replace(case, batch=1)
    if held > free:
        return f"needs {held / 1e9:.1f} GB, {free / 1e9:.1f} GB are available"
    tflop = 4e-12 * case.batch * case.heads * case.length_q * case.length_kv * case.head_dim
    if tflop > max_tflop:
        return f"its reference takes {tflop:.1f} TFLOP, correctness.max_tflop is {max_tflop}"
    return None


def _layout(case: Case, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return tensors with the case's strides: small, or without data."""
    small = case.batch * case.heads * case.length_q * case.head_dim < 2**20
    return case.tensors(device) if small else case.without_data(device)
