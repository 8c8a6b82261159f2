"""Kernel resources: what each tuned configuration of the Triton kernel needs, on every generation.

Compiled here for GPUs that need not be there: registers, shared memory, spills, and whether the
kernel uses the generation's matrix and copy instructions.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from tqdm import tqdm

from tiled_attention.implementations.tuned import choose_blocks
from tiled_attention.offline import SHARED_BYTES, compiled, resources


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return {"result": one row a generation, dtype, head_dim and causal}."""
    chosen = options["kernel_resources"]
    wanted = [
        (capability, dtype, head_dim, causal)
        for capability in chosen["capabilities"]
        for dtype in chosen["dtypes"]
        for head_dim in chosen["head_dims"]
        for causal in chosen["causal"]
    ]
    rows = []
    for capability, dtype, head_dim, causal in tqdm(wanted, desc="compiling", disable=None):
        blocks = choose_blocks(capability, head_dim, 4 if dtype == "float32" else 2)
        rows.append(
            {
                "implementation": "triton_flash",
                "capability": capability,
                "dtype": dtype,
                "head_dim": head_dim,
                "causal": causal,
                **blocks._asdict(),
                **resources(compiled(capability, dtype, head_dim, causal, blocks)),
                "shared_bytes_limit": SHARED_BYTES[capability],
            }
        )
    return {"result": pd.DataFrame(rows)}


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("kernel_resources", measure, __doc__)
