"""Tuned configurations: small tables that the tuning command writes and kernels read.

Nothing is tuned while the pipeline runs, so two processes always use the same configuration.
"""

from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import OmegaConf

TABLE_FILE = Path(__file__).with_name("triton_flash.yaml")


class Blocks(NamedTuple):
    """How one program works: rows of queries and keys, warps, and pipeline stages."""

    block_m: int
    block_n: int
    warps: int
    stages: int


def choose_blocks(capability: int, head_dim: int, element_bytes: int) -> Blocks:
    """Return the entry of the newest generation up to `capability` that fits `head_dim`.

    `capability` is 90 for 9.0; `head_dim` is padded to a power of two.

    Raises:
        ValueError: the table has no such entry.
    """
    for row in table():
        fits = capability >= row["capability"] and head_dim <= row["head_dim"]
        if fits and element_bytes == row["element_bytes"]:
            return Blocks(row["block_m"], row["block_n"], row["warps"], row["stages"])
    raise ValueError(
        f"triton_flash.yaml has no blocks for compute capability {capability / 10}, head_dim "
        f"{head_dim} and {element_bytes}-byte elements"
    )


@cache
def table() -> list[dict[str, Any]]:
    """Return the rows of triton_flash.yaml: newest generation first, then smallest head_dim."""
    rows: Any = OmegaConf.to_container(OmegaConf.load(TABLE_FILE))
    return sorted(rows, key=lambda row: (-row["capability"], row["head_dim"]))
