"""Cost models recover the curves they are given, and say where they cannot."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiled_attention.cost_models import (
    CostModel,
    NotEnoughDataError,
    crossing,
    fit,
    limit_ratio,
)

LENGTHS = (512, 1024, 2048, 4096, 8192)
NOT_A_TIME = [float("nan"), 0.0, -1.0, float("inf")]
Curve = Callable[[float], float]


def model(fixed: float = 0.0, quadratic: float = 0.0, floor: float = 0.0) -> CostModel:
    return CostModel(fixed, 0.0, quadratic, floor, None)


def fitted(curve: Curve, lengths: Sequence[int], block_size: float | None = None) -> CostModel:
    return fit(lengths, [curve(length) for length in lengths], block_size)


@given(fixed=st.floats(0, 10), per_block=st.floats(0, 1), quadratic=st.floats(1e-9, 1e-4))
def test_noiseless_costs_are_recovered(fixed: float, per_block: float, quadratic: float) -> None:
    true = CostModel(fixed, per_block, quadratic, 0.0, 64)
    found = fit(LENGTHS, true.time(np.array(LENGTHS)).tolist(), 64, flat=0)
    for length in (*LENGTHS, 100, 20_000):
        assert found.time(length) == pytest.approx(true.time(length), rel=1e-3)
    shortest = float(true.time(LENGTHS[0]))  # a term is known as far as it can be seen
    assert found.fixed == pytest.approx(fixed, rel=1e-3, abs=1e-5 * shortest)
    assert found.per_block * 8 == pytest.approx(per_block * 8, rel=1e-3, abs=1e-5 * shortest)
    assert found.quadratic == pytest.approx(quadratic, rel=1e-3)


@given(st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=5))
def test_no_cost_is_negative(times: list[float]) -> None:
    found = fit(LENGTHS, times, 64, flat=0)
    assert min(found.fixed, found.per_block, found.quadratic, found.floor) >= 0


def test_costs_that_would_be_negative_are_zero() -> None:
    steeper_than_quadratic = fitted(lambda length: length**3 * 1e-8, LENGTHS, block_size=64)
    assert steeper_than_quadratic.fixed == 0
    assert steeper_than_quadratic.per_block == 0


@pytest.mark.parametrize("block_size", [None, 64])
def test_dispatch_of_the_shortest_lengths_is_a_floor(block_size: float | None) -> None:
    lengths = [2**power for power in range(4, 14)]
    naive = fitted(lambda length: max(0.05, 1e-7 * length**2), lengths)
    tiled = fitted(lambda length: max(0.10, 4e-8 * length**2), lengths, block_size)
    assert naive.floor == pytest.approx(0.05)
    assert tiled.floor == pytest.approx(0.10)
    assert tiled.quadratic == pytest.approx(4e-8)
    found = crossing(naive, tiled, 16, 8192)
    assert found.kind == "crosses"
    assert found.length == pytest.approx(1000, rel=0.02)
    assert found.limit_ratio == pytest.approx(0.4)


def test_noise_on_the_floor_does_not_move_the_crossing() -> None:
    lengths = [2**power for power in range(4, 14)]
    noise = np.random.default_rng(0).normal(1, 0.02, size=(2, len(lengths)))
    naive = [max(0.05, 1e-7 * length**2) for length in lengths] * noise[0]
    tiled = [max(0.10, 4e-8 * length**2) for length in lengths] * noise[1]
    found = crossing(fit(lengths, naive, None), fit(lengths, tiled, 64), 16, 8192)
    assert found.length == pytest.approx(1000, rel=0.05)


def test_rising_times_have_no_floor() -> None:
    assert fitted(lambda length: 1 + 1e-5 * length**2, LENGTHS).floor == 0
    assert fitted(lambda length: 1 + 1e-3 * length, LENGTHS, block_size=64).floor == 0


def test_a_large_fixed_cost_is_no_floor() -> None:
    lengths = (512, 1024, 2048, 4096)
    found = fitted(lambda length: 10 + 4e-7 * length**2, lengths)
    assert (found.floor, found.fixed) == (0, pytest.approx(10))
    assert found.quadratic == pytest.approx(4e-7)


def test_neighbouring_lengths_alone_make_no_floor() -> None:
    quadratic = fitted(lambda length: 1e-6 * length**2, (500, 510, 520, 1000, 2000))
    assert quadratic.floor == 0
    assert quadratic.quadratic == pytest.approx(1e-6)


def test_article_times_grow_faster_than_any_of_these_models() -> None:
    lengths, naive, tiled = (512, 1024, 2048), (3.88, 19.78, 117.68), (6.31, 26.50, 119.09)
    models = fit(lengths, naive, None), fit(lengths, tiled, 128)
    for found, times in zip(models, (naive, tiled), strict=True):
        assert found.fixed == found.per_block == found.floor == 0
        assert 0.5 * min(times) < found.time(512) < 2 * min(times)
        assert found.time(2048) < max(times)
    assert crossing(*models, 512, 2048).kind == "never faster"


@pytest.mark.parametrize(
    ("lengths", "times"),
    [
        ([], []),
        ([512], [1.0]),
        ([512, 512], [1.0, 1.1]),
        *(([512, 1024, 2048, 4096], [1.0, *[invalid] * 3]) for invalid in NOT_A_TIME),
        ([512, 1024], [1.0, 0.0]),
    ],
)
@pytest.mark.parametrize("block_size", [None, 64])
def test_one_point_is_not_enough(
    lengths: list[float], times: list[float], block_size: float | None
) -> None:
    with pytest.raises(NotEnoughDataError, match=r"not enough data: [01] lengths for"):
        fit(lengths, times, block_size)


@pytest.mark.parametrize("invalid", NOT_A_TIME)
def test_invalid_times_are_left_out(invalid: float) -> None:
    with_gap = fit([512, 1024, 2048], [0.26, invalid, 4.2], None)
    assert with_gap == fit([512, 2048], [0.26, 4.2], None)
    with pytest.raises(NotEnoughDataError, match="2 lengths for 3 terms"):
        fit([512, 1024, 2048], [0.26, invalid, 4.2], 64)


def test_points_left_out_as_dispatch_are_told() -> None:
    with pytest.raises(NotEnoughDataError, match="3 left out as dispatch"):
        fit([16, 32, 64], [1.0, 1.01, 0.99], None)


def test_order_and_repetition_of_lengths_do_not_matter() -> None:
    shuffled = fit([2048, 512, 1024, 512, 512], [4.2, 0.26, 1.1, 9.0, 0.1], None)
    assert shuffled == fit([512, 1024, 2048], [0.26, 1.1, 4.2], None)


@pytest.mark.parametrize(
    ("baseline", "candidate", "kind", "length"),
    [
        (model(0.1, 2e-6), model(1.1, 1e-6), "crosses", 1000),
        (model(0.1, 2e-6), model(200.1, 1e-6), "crosses", 14142),  # far outside
        (model(0.1, 1e-6), model(0.2, 1e-6), "never faster", math.inf),  # parallel
        (model(0.1, 1e-6), model(0.1, 1e-6), "no difference", math.nan),
        (model(0.1, 1e-6), model(0.1005, 1e-6), "no difference", math.nan),
        (model(0.2, 2e-6), model(0.1, 1e-6), "already faster", 0),
        (model(0.1, 1e-6), model(0.2, 2e-6), "never faster", math.inf),
        (model(1.1, 1e-6), model(0.1, 2e-6), "slower from here on", 1000),
        (model(0.1, 1e-6), model(1e13, 0.9e-6), "never faster", math.inf),  # past the horizon
    ],
)
def test_kinds_of_crossing(
    baseline: CostModel, candidate: CostModel, kind: str, length: float
) -> None:
    found = crossing(baseline, candidate, 512, 8192)
    assert found.kind == kind
    assert found.length == pytest.approx(length, rel=1e-3, nan_ok=True)
    assert found.limit_ratio == pytest.approx(candidate.quadratic / baseline.quadratic)


def test_two_crossings_are_told_with_the_first() -> None:
    baseline = model(quadratic=1e-6, floor=1.0)
    candidate = CostModel(fixed=0.5, per_block=0.064, quadratic=0.0, floor=0.0, block_size=64)
    found = crossing(baseline, candidate, 100, 8192)  # slower from 500 on, faster from 1366 on
    assert found.kind == "crosses twice or more"
    assert found.length == pytest.approx(500)


def test_equal_floors_do_not_hide_a_crossing() -> None:
    baseline, candidate = model(quadratic=2e-6, floor=0.1), model(quadratic=1e-6, floor=0.1)
    found = crossing(baseline, candidate, 16, 8192)
    assert found.kind == "crosses"
    assert found.length == pytest.approx(math.sqrt(0.1 / 2e-6), rel=0.02)


def test_crossing_is_symmetric() -> None:
    cheap_start, cheap_end = model(0.1, 2e-6), model(1.1, 1e-6)
    forth = crossing(cheap_start, cheap_end, 512, 8192)
    back = crossing(cheap_end, cheap_start, 512, 8192)
    assert forth.length == pytest.approx(back.length)
    assert forth.limit_ratio == pytest.approx(1 / back.limit_ratio)


@pytest.mark.parametrize(
    ("baseline", "candidate", "ratio"),
    [(2e-6, 1e-6, 0.5), (0.0, 1e-6, math.inf), (0.0, 0.0, math.nan), (1e-6, 0.0, 0.0)],
)
def test_limit_ratio(baseline: float, candidate: float, ratio: float) -> None:
    found = limit_ratio(model(1, baseline), model(1, candidate))
    assert found == pytest.approx(ratio, nan_ok=True)


def test_time_counts_blocks_and_keeps_the_floor() -> None:
    costs = CostModel(fixed=1, per_block=0.5, quadratic=1e-4, floor=3, block_size=64)
    assert costs.time(64) == pytest.approx(3)
    assert costs.time(640) == pytest.approx(1 + 5 + 40.96)
    np.testing.assert_allclose(costs.time(np.array([64.0, 640.0])), [3, 46.96])
