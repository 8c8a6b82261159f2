"""Every verdict, from timings whose true curves are known."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tiled_attention.statistics import median_interval
from tiled_attention.steps import crossover

FITTED = [512, 1024, 2048]
LONGER = [4096, 8192]
CHOSEN = {
    "fitted_lengths": FITTED,
    "confidence": 0.95,
    "resamples": 100,
    "seed": 0,
}
Curve = Callable[[float], float]
Tables = dict[str, pd.DataFrame]


def quadratic(fixed: float, per_square: float) -> Curve:
    return lambda length: fixed + per_square * length**2


NAIVE = quadratic(0.1, 2e-6)
CROSSES_AT_1500 = quadratic(0.1 + 1e-6 * 1500**2, 1e-6)


def timed(
    curves: Mapping[str, Curve],
    lengths: Sequence[int] = (*FITTED, *LONGER),
    noise: float = 0.02,
    rounds: int = 25,
    seed: int = 0,
) -> Tables:
    """Samples of each curve with log-normal noise, and the table that the timing step makes."""
    generator = np.random.default_rng(seed)
    samples = pd.DataFrame(
        {
            "series": "lengths",
            "implementation": name,
            "length": length,
            "round": number,
            "ms": curve(length) * generator.lognormal(sigma=noise),
            "block_size": 64.0 if name == "tiled" else np.nan,
        }
        for length in lengths
        for number in range(rounds)
        for name, curve in curves.items()
    )
    return {"samples": samples, "result": result_of(samples)}


def result_of(samples: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for (length, name), own in samples.groupby(["length", "implementation"], sort=False):
        baseline = samples.query("length == @length and implementation == 'naive'")
        ratios = own.set_index("round")["ms"] / baseline.set_index("round")["ms"]
        low, high = median_interval(ratios.to_numpy(), 0.95, 200)
        rows.append(
            {
                "series": "lengths",
                "implementation": name,
                "length": length,
                "median_ms": own["ms"].median(),
                "ratio_to_naive": ratios.median(),
                "ratio_ci_low": low,
                "ratio_ci_high": high,
                "status": "ok",
            }
        )
    return pd.DataFrame(rows)


def measure(timing: Tables, **changed: Any) -> Tables:
    return crossover.measure({"crossover": CHOSEN | changed}, {"cpu_timing": timing})


def row_of(tables: Tables, name: str = "tiled") -> dict[str, Any]:
    (row,) = tables["result"].query("implementation == @name").to_dict("records")
    return row


def test_crossing_is_found_and_confirmed() -> None:
    tables = measure(timed({"naive": NAIVE, "tiled": CROSSES_AT_1500}))
    row = row_of(tables)
    assert row["kind"] == "crosses"
    assert row["verdict"] == "confirmed"
    assert row["ci_low"] < 1500 < row["ci_high"]
    assert row["ci_low"] < row["predicted_length"] < row["ci_high"]
    assert row["ci_high"] - row["ci_low"] < 500
    assert row["predicted_length"] == pytest.approx(1500, rel=0.1)
    assert (row["baseline"], row["fitted_on"]) == ("naive", "512 1024 2048")
    assert row["confirmed_on"] == "4096 8192"
    sides = tables["confirmation"][["predicted_side", "measured_side"]]
    assert (sides == "faster").all(axis=None)


def test_intervals_hold_the_true_crossing() -> None:
    """About as often as their confidence says, over repetitions of the whole measurement."""
    curves = {"naive": NAIVE, "other": CROSSES_AT_1500}
    held = 0
    for seed in range(20):
        row = row_of(measure(timed(curves, FITTED, noise=0.04, seed=seed)), "other")
        held += row["ci_low"] <= 1500 <= row["ci_high"]
    assert held >= 17


def test_longer_lengths_refute_a_prediction() -> None:
    def cliff(length: float) -> float:
        return CROSSES_AT_1500(length) * (3 if length > 2048 else 1)

    row = row_of(measure(timed({"naive": NAIVE, "tiled": cliff})))
    assert row["kind"] == "crosses"
    assert row["verdict"] == "refuted"


def test_one_contradicting_length_refutes() -> None:
    def cliff(length: float) -> float:
        return CROSSES_AT_1500(length) * (3 if length > 4096 else 1)

    assert row_of(measure(timed({"naive": NAIVE, "tiled": cliff})))["verdict"] == "refuted"


def test_no_longer_length_leaves_it_unconfirmed() -> None:
    row = row_of(measure(timed({"naive": NAIVE, "tiled": CROSSES_AT_1500}, FITTED)))
    assert row["verdict"] == "unconfirmed: no longer length was timed"
    assert row["confirmed_on"] == ""


def test_ratios_about_one_are_undecided() -> None:
    row = row_of(measure(timed({"naive": NAIVE, "other": NAIVE}, noise=0.1)), "other")
    assert row["verdict"].startswith("undecided: an interval spans 1 at every longer length")


def test_crossing_beyond_the_fitted_lengths_says_so_and_carries_its_interval() -> None:
    far = quadratic(0.1 + 0.5e-6 * 3000**2, 1.5e-6)
    row = row_of(measure(timed({"naive": NAIVE, "other": far}, FITTED, noise=0.01)), "other")
    assert row["kind"] == "crosses"
    assert "extrapolated beyond the fitted lengths" in row["verdict"]
    assert row["ci_low"] < 3000 < row["ci_high"]


def test_crossing_that_may_never_come_says_so() -> None:
    almost_parallel = quadratic(2.0, 1.98e-6)
    timing = timed({"naive": NAIVE, "other": almost_parallel}, noise=0.05)
    row = row_of(measure(timing), "other")
    assert row["kind"] == "crosses"
    assert row["ci_high"] == math.inf
    assert row["verdict"].endswith("may never come")


@pytest.mark.parametrize(
    ("curve", "kind", "verdict", "length"),
    [
        (quadratic(0.2, 4e-6), "never faster", "confirmed", math.nan),
        (quadratic(0.3, 2e-6), "never faster", "confirmed", math.nan),  # parallel
        (quadratic(0.05, 1e-6), "already faster", "confirmed", math.nan),
        (quadratic(0.01, 2.36e-6), "slower from here on", "confirmed", 500),
    ],
)
def test_other_kinds_and_their_verdicts(
    curve: Curve, kind: str, verdict: str, length: float
) -> None:
    timing = timed({"naive": NAIVE, "other": curve}, [256, *FITTED, *LONGER], noise=1e-4)
    row = row_of(measure(timing, fitted_lengths=[256, *FITTED]), "other")
    assert row["kind"] == kind
    assert row["verdict"] == verdict
    assert row["predicted_length"] == pytest.approx(length, rel=0.02, nan_ok=True)


def test_equal_curves_are_no_difference() -> None:
    row = row_of(measure(timed({"naive": NAIVE, "other": NAIVE}, noise=1e-4)), "other")
    assert row["kind"] == "no difference"
    assert math.isnan(row["predicted_length"])


@pytest.mark.parametrize(
    ("lengths", "reason"),
    [([512], "1 lengths for 2 terms"), ([512, 512], "1 lengths for 2 terms")],
)
def test_too_few_lengths_give_no_number(lengths: list[int], reason: str) -> None:
    timing = timed({"naive": NAIVE, "tiled": CROSSES_AT_1500}, [512])
    tables = measure(timing, fitted_lengths=lengths)
    row = row_of(tables)
    assert row["kind"] == "not identifiable"
    assert row["verdict"] == f"not enough data: {reason}"
    assert all(map(math.isnan, (row["predicted_length"], row["ci_low"], row["ci_high"])))
    assert "curves" not in tables


def test_lengths_that_were_skipped_give_no_number() -> None:
    timing = timed({"naive": NAIVE, "tiled": CROSSES_AT_1500})
    short = timing["samples"]["length"] == 512
    tiled = timing["samples"]["implementation"] == "tiled"
    tables = measure(
        {
            "samples": timing["samples"][short | ~tiled],
            "result": timing["result"].assign(
                status=np.where(
                    (timing["result"]["implementation"] == "tiled")
                    & (timing["result"]["length"] != 512),
                    "skipped: needs 99 GB",
                    "ok",
                )
            ),
        }
    )
    assert row_of(tables)["verdict"] == "not enough data: 1 lengths for 3 terms"
    assert set(tables["terms"]["implementation"]) == {"naive"}


def test_failed_baseline_gives_no_number() -> None:
    timing = timed({"naive": NAIVE, "tiled": CROSSES_AT_1500})
    samples = timing["samples"].query("implementation != 'naive'")
    result = timing["result"].copy()
    result.loc[result["implementation"] == "naive", "status"] = "not timed: failed correctness"
    row = row_of(measure({"samples": samples, "result": result}))
    assert row["kind"] == "not identifiable"
    assert math.isnan(row["predicted_length"])


def test_order_of_implementations_and_samples_does_not_matter() -> None:
    timing = timed({"naive": NAIVE, "tiled": CROSSES_AT_1500})
    forth = measure(timing)["result"]
    back = measure(
        {
            "samples": timing["samples"].iloc[::-1],
            "result": timing["result"].sort_values(
                ["length", "implementation"], ascending=[True, False]
            ),
        }
    )
    pd.testing.assert_frame_equal(back["result"], forth)


def test_same_timings_give_the_same_tables() -> None:
    timing = timed({"naive": NAIVE, "tiled": CROSSES_AT_1500})
    first, second = measure(timing), measure(timing)
    assert first.keys() == second.keys()
    for name, table in first.items():
        pd.testing.assert_frame_equal(table, second[name])


def test_fit_does_not_see_the_longer_lengths() -> None:
    with_longer = timed({"naive": NAIVE, "tiled": CROSSES_AT_1500})
    fitted = with_longer["samples"]["length"].isin(FITTED)
    without = {
        "samples": with_longer["samples"][fitted],
        "result": with_longer["result"].query("length in @FITTED"),
    }
    columns = ["predicted_length", "ci_low", "ci_high"]
    seen, unseen = (measure(timing)["result"][columns] for timing in (with_longer, without))
    pd.testing.assert_frame_equal(seen, unseen)


def test_terms_and_residuals_of_every_implementation() -> None:
    tables = measure(timed({"naive": NAIVE, "other": CROSSES_AT_1500}, noise=0.002))
    terms = tables["terms"].set_index(["implementation", "term"])
    assert terms.loc[("naive", "quadratic"), "value"] == pytest.approx(2e-6, rel=0.01)
    assert terms.loc[("other", "quadratic"), "value"] == pytest.approx(1e-6, rel=0.01)
    assert terms.loc[("other", "fixed"), "value"] == pytest.approx(2.35, rel=0.01)
    assert (terms["ci_low"] <= terms["value"]).all()
    assert (terms["value"] <= terms["ci_high"]).all()
    residuals = tables["residuals"]
    assert residuals.groupby("implementation")["length"].agg(list).to_dict() == {
        "naive": [*FITTED, *LONGER],
        "other": [*FITTED, *LONGER],
    }
    assert residuals["seen_by_fit"].tolist() == [True, True, True, False, False] * 2
    assert residuals["residual_percent"].abs().max() < 2


def test_article_times_leave_a_large_residual() -> None:
    """They grow faster than quadratic, and the table says so."""
    article = {"naive": (3.88, 19.78, 117.68), "tiled": (6.31, 26.50, 119.09)}
    curves = {name: dict(zip(FITTED, times, strict=True)).get for name, times in article.items()}
    row = row_of(measure(timed(curves, FITTED, noise=1e-4)))
    assert row["kind"] == "never faster"
    assert row["worst_residual_percent"] > 30


def test_band_holds_the_ratio() -> None:
    curves = measure(timed({"naive": NAIVE, "tiled": CROSSES_AT_1500}))["curves"]
    assert (curves["predicted_low"] <= curves["predicted_ratio"]).all()
    assert (curves["predicted_ratio"] <= curves["predicted_high"]).all()
    assert curves["length"].min() == pytest.approx(512)
    assert curves["length"].max() == pytest.approx(8192)
