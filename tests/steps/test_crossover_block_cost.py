"""The cost of one more block, from a sweep whose true line is known."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tiled_attention.steps.crossover import block_cost

CHOSEN = {"seed": 0, "resamples": 100, "confidence": 0.95}


def sweep(per_block: float, sizes: Sequence[int], noise: float = 0.01) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    columns = ["series", "implementation", "length", "round", "ms", "block_size"]
    rows = [
        ("block sweep", "tiled", 1000, number, time * generator.lognormal(sigma=noise), size)
        for size in sizes
        for time in [5 + per_block * math.ceil(1000 / size)]
        for number in range(20)
    ]
    return pd.DataFrame(rows, columns=columns)


def cost(samples: pd.DataFrame) -> dict[str, Any]:
    (row,) = block_cost(samples, CHOSEN).to_dict("records")
    return row


@pytest.mark.parametrize("per_block", [0.0, 0.05, 0.5])
def test_cost_of_one_more_block(per_block: float) -> None:
    row = cost(sweep(per_block, [16, 32, 64, 128, 256, 512]))
    assert row["status"] == "ok"
    assert row["ci_low"] <= per_block <= row["ci_high"]
    assert row["ms_per_block"] == pytest.approx(per_block, rel=0.05, abs=0.002)
    assert row["block_sizes"] == "16 32 64 128 256 512"
    assert row["length"] == 1000
    if per_block:
        assert row["r_squared"] > 0.9


@pytest.mark.parametrize("sizes", [[], [64], [64, 128]])
def test_too_few_block_sizes(sizes: list[int]) -> None:
    row = cost(sweep(0.05, sizes))
    assert row["status"] == "not enough data: fewer than three block sizes"
    assert "ms_per_block" not in row
