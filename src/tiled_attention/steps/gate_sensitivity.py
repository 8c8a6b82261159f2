"""Gate sensitivity: does the gate reject attentions that are known to be broken?

Each mutant runs through the same gate as the implementations; it is rejected if any of its cases
fails. The difference from naive attention stands beside it, to show what a fixed tolerance would
have let through.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from tqdm import tqdm

from tiled_attention.cases import Case
from tiled_attention.judging import case_columns, judge
from tiled_attention.mutants import MUTANTS

BLOCK_SIZE = 64
SHAPE = Case("not causal", length_q=512, length_kv=512)
CASES = (
    SHAPE,
    replace(SHAPE, name="causal", causal=True),
    replace(SHAPE, name="magnitude: five times larger", inputs="five times larger"),
)


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return {"result": one row a mutant, dtype, seed and case}."""
    chosen = options["gate_sensitivity"]
    rows = []
    for mutant in tqdm(MUTANTS, desc="gate sensitivity", disable=None):
        implementation = mutant.build({"block_size": BLOCK_SIZE})
        for dtype in chosen["dtypes"]:
            for seed in chosen["seeds"]:
                for shape in CASES:
                    case = replace(shape, dtype=dtype, seed=seed)
                    row = {"mutant": mutant.name, "fault": mutant.fault}
                    row |= case_columns(case, implementation) | judge(implementation, case)
                    rows.append(row)
    return {"result": pd.DataFrame(rows).astype({"passed": "boolean"})}


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("gate_sensitivity", measure, __doc__)
