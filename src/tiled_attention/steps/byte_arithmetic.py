"""Byte arithmetic: Table 2, and the length at which naive attention outgrows each device.

All values are exact integers; nothing is measured here (see peak_memory for that).
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from tiled_attention.sizes import largest_length, naive_bytes, query_tiled_bytes, tiled_bytes

READINGS = {"decimal": 10**9, "binary": 2**30}  # "80 GB" is 80e9 bytes, or 80 * 2**30


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return "result" and "check", one row a length, and "devices", one a device and reading."""
    arithmetic = options["byte_arithmetic"]
    return {
        "check": production_lengths(**arithmetic["check"]),
        "result": production_lengths(**arithmetic["table"]),
        "devices": device_limits(options["devices"], **arithmetic["fit"]),
    }


def production_lengths(
    lengths: list[int], batch: int, heads: int, dtype: str, block_size: int
) -> pd.DataFrame:
    """Return naive, tiled and query-tiled sizes in bytes, and the reduction."""
    rows = []
    for length in lengths:
        naive = naive_bytes(length, heads, batch, dtype)
        tiled = tiled_bytes(length, heads, batch, dtype, block_size)
        rows.append(
            {
                "length": length,
                "heads": heads,
                "batch": batch,
                "dtype": dtype,
                "block_size": block_size,
                "naive_bytes": naive,
                "tiled_bytes": tiled,
                "query_tiled_bytes": query_tiled_bytes(length, heads, batch, dtype, block_size),
                "reduction": naive / tiled,
            }
        )
    return pd.DataFrame(rows)


def device_limits(
    devices: Mapping[str, Mapping[str, Any]], heads: list[int], batch: int, dtype: str
) -> pd.DataFrame:
    """Return, for each device, the last length whose naive scores fit, and the next one."""
    rows = []
    for name, device in devices.items():
        for reading, unit in READINGS.items():
            memory_bytes = device["memory"] * unit
            for count in heads:
                length = largest_length(memory_bytes, count, batch, dtype)
                rows.append(
                    {
                        "device": name,
                        "device_name": device["name"],
                        "reading": reading,
                        "memory_bytes": memory_bytes,
                        "heads": count,
                        "batch": batch,
                        "dtype": dtype,
                        "largest_length": length,
                        "first_exceeding_length": length + 1,
                    }
                )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("byte_arithmetic", measure, __doc__)
