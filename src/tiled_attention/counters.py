"""Bytes that calls move between a GPU's memory and its caches, by Nsight Compute's counters."""

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pandas as pd

from tiled_attention.errors import StepError

READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
MARKER = "spin_kernel"  # launched by counted_calls before each call


def count(calls: Sequence[dict[str, Any]]) -> list[dict[str, int]]:
    """Return bytes read and written and kernels launched, for each of the calls.

    A call holds an implementation's `options` and a `case`, as counted_calls takes them.

    Raises:
        StepError: Nsight Compute is not installed, or may not read the counters.
    """
    tool = shutil.which("ncu")
    if tool is None:
        raise StepError("Nsight Compute (ncu) is not installed")
    done = subprocess.run(
        [tool, "--clock-control", "none", "--profile-from-start", "off", "--csv",
         "--print-units", "base", "--metrics", f"{READ},{WRITTEN}",
         sys.executable, "-m", "tiled_attention.counted_calls", json.dumps(list(calls))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    errors = [line for line in done.stdout.splitlines() if line.startswith("==ERROR==")]
    if errors or done.returncode:
        last = (errors or done.stderr.strip().splitlines() or ["no message"])[-1]
        raise StepError(f"Nsight Compute failed: {last.removeprefix('==ERROR==').strip()}")
    found = by_call(done.stdout)
    if len(found) != len(calls):
        raise StepError(f"Nsight Compute told of {len(found)} of {len(calls)} calls")
    return found


def by_call(output: str) -> list[dict[str, int]]:
    """Return the sums over each call's kernels, from Nsight Compute's CSV."""
    lines = output.splitlines()
    header = next((n for n, line in enumerate(lines) if line.startswith('"ID"')), None)
    if header is None:
        return []
    table = pd.read_csv(io.StringIO("\n".join(lines[header:])), thousands=",")
    kernels = table.pivot(index="ID", columns="Metric Name", values="Metric Value").astype(float)
    names = table.drop_duplicates("ID").set_index("ID")["Kernel Name"]
    call = names.str.contains(MARKER).cumsum()
    own = kernels[~names.str.contains(MARKER)]
    return [
        {
            "read_bytes": int(rows[READ].sum()),
            "written_bytes": int(rows[WRITTEN].sum()),
            "kernels": len(rows),
        }
        for _, rows in own.groupby(call.loc[own.index])
    ]
