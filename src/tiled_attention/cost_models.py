"""Cost models of attention by length, and where one becomes cheaper than another.

time(S) = max(floor, fixed + per_block * S / block_size + quadratic * S^2), in ms. All
coefficients are non-negative: each is a cost. Naive attention has no blocks. The floor is there
only where the shortest lengths all take the same time: those points measure the dispatch of
operators, would bend the other terms, and are left out of their fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, nnls

Array = NDArray[np.float64]

FLAT_GROWTH = 1.15  # less growth than this over FLAT_STRIDE in length is no growth
FLAT_STRIDE = 1.4
FLOOR_NOISE = 0.05  # relative; medians of the same cost may be so far apart
HORIZON = 1024  # look for crossings up to so many times the longest fitted length
GRID_POINTS = 1000
EQUAL = 0.01  # ratios this close to 1 over the whole range are no difference


class NotEnoughDataError(ValueError):
    """There are fewer distinct lengths with a valid time than terms to fit."""


@dataclass(frozen=True)
class CostModel:
    """Fitted coefficients in ms; per_block is per block, quadratic per squared length."""

    fixed: float
    per_block: float
    quadratic: float
    floor: float
    block_size: float | None

    def time(self, length: Array | float) -> Array:
        """Return the modelled time in ms."""
        lengths = np.asarray(length, dtype=float)
        blocks = lengths / self.block_size if self.block_size else 0.0
        cost = self.fixed + self.per_block * blocks + self.quadratic * lengths**2
        return np.maximum(self.floor, cost)

    def worst_error(self, lengths: Sequence[float], times: Sequence[float]) -> float:
        """Return the largest relative error at the valid points."""
        length, time = valid_points(lengths, times)
        return float(np.abs(self.time(length) / time - 1).max())


def fit(
    lengths: Sequence[float],
    times: Sequence[float],
    block_size: float | None,
    flat: int | None = None,
) -> CostModel:
    """Fit by non-negative least squares on relative errors (Lawson & Hanson 1974).

    The `flat` shortest lengths make the floor; None counts them by `dispatch_points`.

    Raises:
        NotEnoughDataError: fewer distinct lengths with a positive, finite time than terms.
    """
    flat = dispatch_points(lengths, times, block_size) if flat is None else flat
    length, time = valid_points(lengths, times)
    floor = float(np.median(time[:flat])) if flat else 0.0
    length, time = length[flat:], time[flat:]
    terms = {"quadratic": length**2}
    if block_size:
        terms["per_block"] = length / block_size
    if not flat:  # the floor is the fixed cost where there is one
        terms["fixed"] = np.ones_like(length)
    if len(length) < len(terms):
        raise NotEnoughDataError(
            f"not enough data: {len(length)} lengths for {len(terms)} terms"
            + (f", {flat} left out as dispatch" if flat else "")
        )
    design = np.stack(list(terms.values()), axis=1) / time[:, None]
    scale = np.linalg.norm(design, axis=0)
    coefficients = nnls(design / scale, np.ones_like(time))[0] / scale
    found = dict(zip(terms, map(float, coefficients), strict=True))
    return CostModel(
        fixed=found.get("fixed", 0.0),
        per_block=found.get("per_block", 0.0),
        quadratic=found["quadratic"],
        floor=floor,
        block_size=block_size,
    )


def dispatch_points(
    lengths: Sequence[float], times: Sequence[float], block_size: float | None
) -> int:
    """Return how many of the shortest lengths measure dispatch: `flat_points`, or 0 where the
    floor misses a length by more than noise and a fixed cost does better; raises as `fit`.
    """
    flat = flat_points(*valid_points(lengths, times))
    floor, fixed = (
        fit(lengths, times, block_size, each).worst_error(lengths, times) for each in (flat, 0)
    )
    return 0 if floor > max(fixed, FLOOR_NOISE) else flat


def flat_points(length: Array, time: Array) -> int:
    """Return how many of the shortest lengths take the same time, 0 if fewer than two.

    Both arrays are sorted by length, without repetition.
    """
    flat = 1
    while flat < len(length):
        far_enough = length[flat] >= FLAT_STRIDE * length[0]
        growth = time[flat] / float(np.median(time[:flat]))
        if not far_enough or not 1 / FLAT_GROWTH < growth < FLAT_GROWTH:
            break
        flat += 1
    return flat if flat >= 2 else 0


def valid_points(lengths: Sequence[float], times: Sequence[float]) -> tuple[Array, Array]:
    """Sort by length, merge equal lengths by their median, drop times that are none."""
    length, time = np.asarray(lengths, dtype=float), np.asarray(times, dtype=float)
    usable = np.isfinite(time) & (time > 0) & np.isfinite(length) & (length > 0)
    distinct = np.unique(length[usable])
    merged = [np.median(time[usable & (length == value)]) for value in distinct]
    return distinct, np.asarray(merged)


@dataclass(frozen=True)
class Crossing:
    """Where `candidate` becomes cheaper than `baseline`, for lengths from `shortest` on."""

    kind: str  # crosses, already faster, never faster, no difference, crosses twice or more
    length: float  # of the first crossing; 0 for already faster, inf for never
    limit_ratio: float  # candidate / baseline as the length grows without end


def crossing(
    baseline: CostModel, candidate: CostModel, shortest: float, longest: float
) -> Crossing:
    """Find where the candidate's modelled time falls below the baseline's.

    `shortest` and `longest` are the fitted lengths' ends; the search ends at HORIZON x longest.
    """

    def log_ratio(log_length: Array) -> Array:
        length = np.exp(log_length)
        return np.log(candidate.time(length)) - np.log(baseline.time(length))

    def root(index: int) -> float:
        def at(point: float) -> float:
            return float(log_ratio(np.asarray(point)))

        return float(np.exp(brentq(at, grid[index], grid[index + 1])))

    grid = np.linspace(np.log(shortest), np.log(longest * HORIZON), GRID_POINTS)
    values = log_ratio(grid)
    limit = limit_ratio(baseline, candidate)
    if np.all(np.abs(values) < EQUAL):
        return Crossing("no difference", float("nan"), limit)
    faster = values < 0  # equal, as on a common floor, is not faster yet
    roots = [root(int(index)) for index in np.flatnonzero(faster[1:] != faster[:-1])]
    if not roots:
        kind = "already faster" if faster[0] else "never faster"
        return Crossing(kind, 0.0 if faster[0] else float("inf"), limit)
    if len(roots) > 1:
        return Crossing("crosses twice or more", roots[0], limit)
    return Crossing("slower from here on" if faster[0] else "crosses", roots[0], limit)


def limit_ratio(baseline: CostModel, candidate: CostModel) -> float:
    """Return the ratio of the quadratic terms: candidate / baseline for very long sequences."""
    if baseline.quadratic == 0:
        return float("nan") if candidate.quadratic == 0 else float("inf")
    return candidate.quadratic / baseline.quadratic
