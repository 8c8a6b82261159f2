"""Correctness on the GPU: judge one implementation on every timed shape and every hard case.

The same gate as on the CPU, with the FP64 reference computed on the GPU, and one case more whose
element offsets pass 2**31.
"""

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from tiled_attention.build import build
from tiled_attention.cases import hard_cases, offsets_case
from tiled_attention.gpu_device import INTERPRETED_TFLOP, device_of, name_of
from tiled_attention.gpu_shapes import timed_cases
from tiled_attention.judging import case_columns, judge
from tiled_attention.timing import exclusive

log = logging.getLogger(__name__)


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return {"result": one row a case} for the one implementation in `options`.

    Raises:
        StepError: there is no CUDA device.
    """
    device = device_of(options)
    ((name, chosen),) = options["implementations"].items()
    wanted = options["gpu_correctness"]
    implementation = build(chosen)
    limit = wanted["max_tflop"] if device == "cuda" else INTERPRETED_TFLOP
    small = list(hard_cases(wanted["hard_case_dtypes"]))
    large = [*timed_cases(wanted), *offsets_case()]
    rows = []
    for case in tqdm([*small, *large], desc=f"GPU correctness of {name}", disable=None):
        row = {
            "implementation": name,
            "ran_on": name_of(device),
            **case_columns(case, implementation),
        }
        # One large case at a time on the GPU, or memory would run out by chance.
        with exclusive("gpu") if case in large else nullcontext():
            rows.append(row | judge(implementation, case, limit, device))
            torch.cuda.empty_cache()  # does nothing where CUDA was never used
    result = pd.DataFrame(rows)
    result["passed"] = result["passed"].astype("boolean")
    if not result["passed"].any():
        log.warning("%s supports none of the cases", name)
    return {"result": result}


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("gpu_correctness", measure, __doc__)
