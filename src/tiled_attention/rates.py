"""Rates in GB/s, summarised."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tiled_attention.statistics import median_interval


def summarised(raw: pd.DataFrame, keys: list[str], chosen: Mapping[str, Any]) -> pd.DataFrame:
    """Return the median rate by `keys`, with its interval."""
    rows = []
    for values, own in raw.groupby(keys, sort=False):
        rates = own["gb_per_s"].to_numpy()
        low, high = median_interval(rates, chosen["confidence"], chosen["resamples"])
        rows.append(
            {
                **dict(zip(keys, values, strict=True)),
                "samples": len(rates),
                "gb_per_s": float(np.median(rates)),
                "ci_low": low,
                "ci_high": high,
                "status": "ok",
            }
        )
    return pd.DataFrame(rows)
