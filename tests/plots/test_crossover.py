"""One panel a candidate: model and band, fitted and unseen points, the predicted interval."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from plots.tables import LENGTHS, NAMES, fits, line, timing, without, words
from tiled_attention.plots.crossover import crossover
from tiled_attention.plots.style import looks

LOOK = looks(NAMES)


def drawn(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


def points(axes: Axes, style: str) -> list[float]:
    """The lengths of the markers that are filled (full) or open (none)."""
    found = [it for it in axes.get_lines() if _is_marker(it) and it.get_fillstyle() == style]
    return sorted(x for it in found for x in it.get_xdata())


def _is_marker(it: Line2D) -> bool:
    return it.get_linestyle() == "None" and it.get_marker() not in ("_", "|")


def shaded(axes: Axes) -> list[tuple[float, float]]:
    return [
        (it.get_x(), it.get_x() + it.get_width())
        for it in axes.patches
        if isinstance(it, Rectangle)
    ]


def test_a_panel_for_each_candidate_in_its_own_look() -> None:
    figure = crossover(fits(), timing(), LOOK)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        f"{name}\ncrosses" for name in NAMES[1:]
    ]
    for name, axes in zip(NAMES[1:], figure.axes, strict=True):
        assert points(axes, "full") == [512, 1024, 2048]
        assert points(axes, "none") == [4096, 8192]
        colors = {it.get_color() for it in axes.get_lines() if _is_marker(it)}
        assert colors == {LOOK[name]["color"]}
        assert any(set(it.get_ydata()) == {1} for it in axes.get_lines())
    assert "time / time of naive" in words(figure)
    assert "(tokens)" in words(figure)


def test_points_have_the_measured_ratio_and_interval() -> None:
    axes = crossover(fits(["tiled"]), timing(), LOOK).axes[0]
    values = [y for it in axes.get_lines() if _is_marker(it) for y in it.get_ydata()]
    assert values == pytest.approx([0.7] * len(LENGTHS))
    bars = [it for it in axes.collections if hasattr(it, "get_segments")]
    ends = [(seg[0][1], seg[1][1]) for it in bars for seg in it.get_segments()]
    assert np.array(ends) == pytest.approx(np.array([[0.665, 0.77]] * len(LENGTHS)))


def test_the_band_is_that_of_the_curves() -> None:
    tables = fits(["tiled"])
    axes = crossover(tables, timing(), LOOK).axes[0]
    band = axes.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(tables["curves"]["predicted_low"].min())
    assert band[:, 1].max() == pytest.approx(tables["curves"]["predicted_high"].max())


def test_the_predicted_interval_is_shaded() -> None:
    axes = crossover(fits(["tiled"]), timing(), LOOK).axes[0]
    assert shaded(axes) == [pytest.approx((1300, 2100))]


@pytest.mark.parametrize("high", [np.inf, 1e9])
def test_an_interval_beyond_the_panel_ends_at_its_edge(high: float) -> None:
    axes = crossover(fits(["tiled"], interval=(3000, high), predicted=6000), timing(), LOOK).axes[
        0
    ]
    assert shaded(axes) == [pytest.approx((3000, axes.get_xlim()[1]))]
    assert axes.get_xlim()[1] < 2 * LENGTHS[-1]


@pytest.mark.parametrize(
    ("predicted", "interval"),
    [
        (np.nan, (0.0, 0.0)),
        (np.nan, (np.nan, np.nan)),
        (np.nan, (0.0, np.inf)),
        (1600.0, (np.nan, np.nan)),
    ],
)
def test_without_a_finite_prediction_nothing_is_shaded(
    predicted: float, interval: tuple[float, float]
) -> None:
    figure = crossover(fits(["tiled"], interval, predicted), timing(), LOOK)
    assert shaded(figure.axes[0]) == []
    assert "predicted crossover" not in words(figure)


def test_nothing_identifiable_says_why_in_each_panel() -> None:
    result = fits()["result"].assign(
        kind="not identifiable", verdict="not enough data: 2 lengths for 3 terms"
    )
    figure = crossover({"result": result, "block_cost": line("no")}, timing(), LOOK)
    assert drawn(figure) == []
    assert words(figure).count("not enough data: 2 lengths for 3 terms") == len(result)
    assert not figure.legends


@pytest.mark.parametrize("missing", NAMES[1:])
def test_a_candidate_without_a_curve_leaves_the_others_readable(missing: str) -> None:
    tables = fits()
    curves = tables["curves"]
    curves.loc[curves["implementation"] == missing, "predicted_ratio"] = np.nan
    figure = crossover(tables, timing(), LOOK)
    panels = drawn(figure)
    assert len(panels) == 3
    assert panels[0].get_yticklabels()[0].get_visible()
    assert [bool(axes.get_xlabel()) for axes in panels] == [False, True, True]
    assert missing in words(figure)


def test_a_skipped_length_has_no_point() -> None:
    results = timing()
    results = without(results, results["length"] == 4096, "skipped: too long")
    axes = crossover(fits(["tiled"]), results, LOOK).axes[0]
    assert points(axes, "none") == [8192]


@pytest.mark.parametrize("tables", [{}, {"block_cost": line()}, {"result": pd.DataFrame()}])
def test_nothing_but_the_baseline(tables: dict[str, pd.DataFrame]) -> None:
    said = words(crossover(tables, timing(names=["naive"]), LOOK))
    assert "No crossover: there is nothing but the baseline." in said
