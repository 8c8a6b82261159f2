"""Refits of the cost models to resampled rounds: where the crossover's intervals come from."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tiled_attention.cost_models import CostModel, dispatch_points, fit

Array = NDArray[np.float64]


class Fitted:
    """One implementation's samples at the fitted lengths, and refits of resampled rounds."""

    def __init__(self, samples: pd.DataFrame, lengths: Sequence[int], name: str) -> None:
        """Take the samples of `name` at `lengths`."""
        own = samples[samples["implementation"] == name]
        self.lengths = [length for length in lengths if (own["length"] == length).any()]
        self.rounds = [
            own[own["length"] == length].sort_values("round")["ms"].to_numpy()
            for length in self.lengths
        ]
        blocks = own["block_size"].dropna().unique()
        self.block_size = float(blocks[0]) if len(blocks) else None
        self.medians = [float(np.median(times)) for times in self.rounds]

    @cached_property
    def flat(self) -> int:
        """How many of the shortest lengths measure dispatch; raises NotEnoughDataError."""
        return dispatch_points(self.lengths, self.medians, self.block_size)

    def model(self) -> CostModel:
        """Fit the medians; raises NotEnoughDataError."""
        return fit(self.lengths, self.medians, self.block_size, self.flat)

    def refit(self, picks: Mapping[int, NDArray[np.int_]]) -> CostModel:
        """Fit the medians of the picked rounds of each length."""
        medians = [
            float(np.median(times[picks[length]]))
            for length, times in zip(self.lengths, self.rounds, strict=True)
        ]
        return fit(self.lengths, medians, self.block_size, self.flat)


def bootstrap_pairs(
    baseline: Fitted, candidate: Fitted, chosen: Mapping[str, Any]
) -> list[tuple[CostModel, CostModel]]:
    """Refit both to resampled rounds, the same rounds for both, as they were timed together."""
    generator = np.random.default_rng(chosen["seed"])
    counts = {
        length: len(times)
        for fitted in (baseline, candidate)
        for length, times in zip(fitted.lengths, fitted.rounds, strict=True)
    }
    pairs = []
    for _ in range(chosen["resamples"]):
        picks = {length: generator.integers(count, size=count) for length, count in counts.items()}
        pairs.append((baseline.refit(picks), candidate.refit(picks)))
    return pairs


def quantiles(values: Array, tail: float) -> tuple[float, float]:
    """Return the interval between the two tails; values may be 0 or infinite, which it keeps."""
    known = values[~np.isnan(values)]
    if not len(known):
        return float("nan"), float("nan")
    return (
        float(np.quantile(known, tail, method="lower")),
        float(np.quantile(known, 1 - tail, method="higher")),
    )
