"""Intervals cover what they claim, and ratios are taken round by round."""

import math

import numpy as np
import pytest

from tiled_attention.statistics import median_interval, paired_ratios


@pytest.mark.parametrize("rounds", [10, 30, 60])
def test_intervals_cover_the_true_median(rounds: int) -> None:
    """Skewed samples, as timings are."""
    generator = np.random.default_rng(rounds)
    trials, covered = 400, 0
    for _ in range(trials):
        samples = generator.lognormal(sigma=0.1, size=rounds)
        low, high = median_interval(samples, confidence=0.95, resamples=300)
        covered += low <= 1.0 <= high
    assert 0.90 <= covered / trials <= 0.985


def test_less_confidence_gives_a_narrower_interval() -> None:
    samples = np.random.default_rng(0).lognormal(size=40)
    widths = [np.ptp(median_interval(samples, level, 1000)) for level in (0.5, 0.8, 0.95, 0.99)]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


def test_more_samples_give_a_narrower_interval() -> None:
    samples = np.random.default_rng(0).lognormal(size=1600)
    few, many = median_interval(samples[:25], 0.95, 1000), median_interval(samples, 0.95, 1000)
    assert np.ptp(many) < np.ptp(few) / 4


@pytest.mark.parametrize("samples", [[], [3.0]])
def test_fewer_than_two_samples_have_no_interval(samples: list[float]) -> None:
    assert all(map(math.isnan, median_interval(samples, 0.95, 100)))


def test_equal_samples_have_an_interval_of_no_width() -> None:
    assert median_interval([3.0] * 5, 0.95, 100) == (3.0, 3.0)


def test_same_samples_give_the_same_interval() -> None:
    samples = np.random.default_rng(0).lognormal(size=20).tolist()
    assert median_interval(samples, 0.95, 200) == median_interval(samples, 0.95, 200)
    low, high = median_interval(samples, 0.95, 200)
    assert min(samples) <= low < np.median(samples) < high <= max(samples)


def test_ratios_are_paired() -> None:
    drift = np.linspace(1, 3, 50)
    ratios = paired_ratios(1.2 * drift, drift)
    np.testing.assert_allclose(ratios, 1.2)
    assert median_interval(ratios, 0.95, 200) == pytest.approx((1.2, 1.2))
