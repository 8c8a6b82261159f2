"""Verdict: ends in an error where an implementation is wrong, or the gate missed a planted fault.

Runs after the report, which says the same in full.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tiled_attention.errors import StepError

GATES = ("correctness", "gpu_correctness")


def measure(
    options: Mapping[str, Any], inputs: Mapping[str, Mapping[str, pd.DataFrame]]
) -> dict[str, pd.DataFrame]:
    """Return {"result": one row an implementation and gate}, all right.

    Raises:
        StepError: an implementation failed a case, passed none on the CPU, or a mutant passed all.
    """
    complaints = []
    rows = []
    for step in GATES:
        cases = inputs.get(step, {}).get("result", pd.DataFrame(columns=["implementation"]))
        for name, own in cases.groupby("implementation", sort=False):
            failed = own[own["passed"].eq(False).fillna(False)]
            passed = int(own["passed"].eq(True).fillna(False).sum())
            if len(failed):
                found = f"{name} fails {len(failed)} of {len(own)} cases, {worst(failed)}"
                complaints.append(f"{step}: {found}")
            elif not passed and step == GATES[0]:  # on a GPU a package may not be installed
                complaints.append(f"{step}: {name} passes no case: all {len(own)} are skipped")
            rows.append(
                {
                    "step": step,
                    "implementation": name,
                    "cases": len(own),
                    "passed": passed,
                    "failed": len(failed),
                    "skipped": len(own) - passed - len(failed),
                }
            )
    mutants = inputs["gate_sensitivity"]["result"]
    for (name, dtype), own in mutants.groupby(["mutant", "dtype"], sort=False):
        if not own["passed"].eq(False).any():
            complaints.append(
                f"gate_sensitivity: the gate does not reject the mutant '{name}' in {dtype}"
            )
    if complaints:
        raise StepError("; ".join(complaints))
    return {"result": pd.DataFrame(rows)}


def worst(failed: pd.DataFrame) -> str:
    """Name the first case that failed outright, or else the one furthest over its tolerance."""
    outright = failed[failed["status"] != "ok"]
    if len(outright):
        row = outright.iloc[0]
        return f"such as '{row['case']}' ({row['dtype']}): {row['status']}"
    excess = (failed["max_abs_error"] / failed["tolerance"]).fillna(float("inf"))
    row = failed.loc[excess.idxmax()]
    return (
        f"worst '{row['case']}' ({row['dtype']}, {row['length_q']} x {row['length_kv']}): "
        f"error {row['max_abs_error']:.2g}, tolerance {row['tolerance']:.2g}"
    )


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("verdict", measure, __doc__)
