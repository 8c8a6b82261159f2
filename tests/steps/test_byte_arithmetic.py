"""Table 2, and exercise 2."""

from typing import Any

import pandas as pd
import pytest

from tiled_attention.sizes import naive_bytes
from tiled_attention.steps import byte_arithmetic

TABLE = {"lengths": [4096, 8192, 32768, 128192, 131072], "heads": 64, "batch": 1}
CHECK = {"lengths": [512], "heads": 4, "batch": 2, "dtype": "float32", "block_size": 64}
OPTIONS: dict[str, Any] = {
    "byte_arithmetic": {
        "check": CHECK,
        "table": TABLE | {"dtype": "bfloat16", "block_size": 128},
        "fit": {"heads": [32, 64], "batch": 1, "dtype": "bfloat16"},
    },
    "devices": {
        "a100_40gb": {"name": "NVIDIA A100 40 GB", "memory": 40},
        "h100_80gb": {"name": "NVIDIA H100 80 GB", "memory": 80},
    },
}


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    return byte_arithmetic.measure(OPTIONS, {})


@pytest.mark.parametrize(
    ("length", "naive", "tiled"),
    [
        (4096, 2147483648, 67108864),
        (8192, 8589934592, 134217728),
        (32768, 137438953472, 536870912),
        (128192, 2103448174592, 2100297728),
        (131072, 2199023255552, 2147483648),
    ],
)
def test_production_lengths(
    tables: dict[str, pd.DataFrame], length: int, naive: int, tiled: int
) -> None:
    row = tables["result"].set_index("length").loc[length]
    assert row["naive_bytes"] == naive
    assert row["tiled_bytes"] == tiled
    assert row["query_tiled_bytes"] == 64 * 128 * 128 * 2
    assert row["reduction"] == length / 128


def test_thousandfold_reduction(tables: dict[str, pd.DataFrame]) -> None:
    assert tables["result"].set_index("length")["reduction"][128192] == 1001.5


def test_check_shape(tables: dict[str, pd.DataFrame]) -> None:
    (row,) = tables["check"].to_dict("records")
    assert (row["naive_bytes"], row["tiled_bytes"]) == (8388608, 1048576)
    assert row["reduction"] == 8
    assert {name: row[name] for name in ("heads", "batch", "dtype", "block_size")} == {
        name: CHECK[name] for name in ("heads", "batch", "dtype", "block_size")
    }


def test_sizes_are_integers(tables: dict[str, pd.DataFrame]) -> None:
    for table in ("result", "check"):
        sizes = tables[table].filter(like="bytes")
        assert all(kind == "int64" for kind in sizes.dtypes)


@pytest.mark.parametrize(("reading", "exceeds"), [("decimal", 25_001), ("binary", 25_906)])
def test_first_length_beyond_40_gb(
    tables: dict[str, pd.DataFrame], reading: str, exceeds: int
) -> None:
    devices = tables["devices"].set_index(["device", "reading", "heads"])
    row = devices.loc[("a100_40gb", reading, 32)]
    assert row["first_exceeding_length"] == exceeds
    assert row["largest_length"] == exceeds - 1


def test_every_device_reading_and_head_count(tables: dict[str, pd.DataFrame]) -> None:
    devices = tables["devices"]
    assert len(devices) == len(devices[["device", "reading", "heads"]].drop_duplicates()) == 8
    for row in devices.to_dict("records"):
        shape = row["heads"], row["batch"], row["dtype"]
        assert naive_bytes(row["largest_length"], *shape) <= row["memory_bytes"]
        assert row["memory_bytes"] < naive_bytes(row["first_exceeding_length"], *shape)
    memory = devices.query("device == 'h100_80gb'").groupby("reading")["memory_bytes"].first()
    assert memory.to_dict() == {"decimal": 80 * 10**9, "binary": 80 * 2**30}
