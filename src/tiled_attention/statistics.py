"""Medians, ratios and their bootstrap intervals."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import bootstrap

Interval = tuple[float, float]
Samples = Sequence[float] | NDArray[np.float64]
NO_INTERVAL = (float("nan"), float("nan"))


def median_interval(samples: Samples, confidence: float, resamples: int) -> Interval:
    """Return a percentile-bootstrap interval of the median; NaN for fewer than two samples.

    The same samples always give the same interval (Efron & Tibshirani 1993, chapter 13).
    """
    values = np.asarray(samples, dtype=float)
    if len(values) < 2:
        return NO_INTERVAL
    found = bootstrap(
        (values,),
        np.median,
        confidence_level=confidence,
        n_resamples=resamples,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def paired_ratios(samples: Samples, baseline: Samples) -> NDArray[np.float64]:
    """Return samples / baseline round by round, so that drift common to both cancels."""
    ratios: NDArray[np.float64] = np.asarray(samples, float) / np.asarray(baseline, float)
    return ratios
