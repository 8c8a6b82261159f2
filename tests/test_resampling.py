"""Refits of resampled rounds."""

import math

import numpy as np
import pandas as pd
import pytest

from tiled_attention.resampling import Fitted, bootstrap_pairs, quantiles

LENGTHS = [512, 1024, 2048]
CHOSEN = {"seed": 0, "resamples": 50}


def samples(factor: float = 1.0, name: str = "tiled", rounds: int = 20) -> pd.DataFrame:
    """Quadratic times under noise that depends on length and round alone."""
    rows = [
        {
            "implementation": name,
            "length": length,
            "round": number,
            "ms": factor * noise * length**2 * 1e-6,
            "block_size": 64.0 if name == "tiled" else np.nan,
        }
        for length in LENGTHS
        for number, noise in enumerate(
            np.random.default_rng(length).lognormal(sigma=0.1, size=rounds)
        )
    ]
    return pd.DataFrame(rows)


def test_samples_of_one_implementation_by_length() -> None:
    both = pd.concat([samples(), samples(3, name="naive")])
    tiled, naive = (Fitted(both, [*LENGTHS, 4096], name) for name in ("tiled", "naive"))
    assert tiled.lengths == naive.lengths == LENGTHS
    assert tiled.block_size == 64
    assert naive.block_size is None
    assert naive.medians == pytest.approx([3 * median for median in tiled.medians])
    assert tiled.medians[1] == pytest.approx(samples().query("length == 1024")["ms"].median())


def test_same_rounds_are_picked_for_both() -> None:
    both = pd.concat([samples(name="naive"), samples(1.5, name="other")]).sample(
        frac=1, random_state=0
    )
    pairs = bootstrap_pairs(Fitted(both, LENGTHS, "naive"), Fitted(both, LENGTHS, "other"), CHOSEN)
    assert len(pairs) == 50
    for naive, other in pairs:
        np.testing.assert_allclose(other.time(np.array(LENGTHS)) / naive.time(LENGTHS), 1.5)
    assert len({naive.quadratic for naive, _ in pairs}) > 10  # the rounds do change


def test_same_seed_gives_the_same_refits() -> None:
    fitted = Fitted(samples(), LENGTHS, "tiled")
    assert bootstrap_pairs(fitted, fitted, CHOSEN) == bootstrap_pairs(fitted, fitted, CHOSEN)
    other = bootstrap_pairs(fitted, fitted, CHOSEN | {"seed": 1})
    assert bootstrap_pairs(fitted, fitted, CHOSEN) != other


def test_refits_lie_about_the_fit() -> None:
    fitted = Fitted(samples(rounds=40), LENGTHS, "tiled")
    refits = [model.quadratic for model, _ in bootstrap_pairs(fitted, fitted, CHOSEN)]
    assert min(refits) < fitted.model().quadratic < max(refits)
    assert np.std(refits) < 0.05 * fitted.model().quadratic


def test_floor_is_found_once_and_kept() -> None:
    """A resample whose shortest lengths differ by chance is fitted with the same terms."""
    table = samples()
    shortest = table["length"] < 2048
    table.loc[shortest, "ms"] = np.random.default_rng(0).normal(2, 0.3, size=shortest.sum())
    table["block_size"] = np.nan
    fitted = Fitted(table, LENGTHS, "tiled")
    assert fitted.flat == 2
    refits = [model for model, _ in bootstrap_pairs(fitted, fitted, CHOSEN)]
    assert all(model.floor > 0 for model in refits)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (np.arange(101.0), 5, 95),
        (np.array([0.0, 1.0, math.inf]), 0, math.inf),
        (np.array([1.0, 2.0, 3.0, math.inf]), 1, math.inf),  # never an average with infinity
        (np.array([math.inf, math.inf]), math.inf, math.inf),
        (np.array([math.nan, 2.0, math.nan]), 2, 2),
        (np.array([math.nan, math.nan]), math.nan, math.nan),
        (np.array([]), math.nan, math.nan),
    ],
)
def test_quantiles_keep_what_is_no_number(values: np.ndarray, low: float, high: float) -> None:
    assert quantiles(values, 0.05) == pytest.approx((low, high), nan_ok=True)
