"""Every judged case has its place, those too that a logarithm has none for."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from plots.tables import NAMES, judged, labelled, mutants, words
from tiled_attention.plots.errors import errors
from tiled_attention.plots.style import looks

LOOK = looks(NAMES)


def row(axes: Axes, name: str) -> list[float]:
    """The places of an implementation's points."""
    (points,) = [it for it in axes.get_lines() if it.get_color() == LOOK[name]["color"]]
    return list(points.get_xdata())


def tick(axes: Axes, label: str) -> float:
    (place,) = [
        place for place, it in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
        if it.get_text() == label
    ]  # fmt: skip
    return float(place)


def test_a_point_for_each_case_at_its_share_and_a_bar_at_the_median() -> None:
    cases = pd.concat([judged("tiled", [0.3, 0.5, 0.2]), judged("sdpa", [0.4])])
    upper, _ = errors(cases, mutants(), LOOK).axes
    assert row(upper, "tiled") == pytest.approx([0.2, 0.3, 0.5])
    assert row(upper, "sdpa") == pytest.approx([0.4])
    assert [it.get_text() for it in upper.get_yticklabels()] == ["tiled", "sdpa"]
    bars = [it.get_xdata()[0] for it in upper.get_lines() if it.get_marker() == "|"]
    assert bars == pytest.approx([0.3, 0.4])
    assert any(set(it.get_xdata()) == {1} for it in upper.get_lines())
    assert upper.get_xscale() == "log"
    assert "off the scale" not in upper.get_xlabel()


def test_no_error_at_all_is_drawn_at_a_place_named_0() -> None:
    upper, _ = errors(judged("tiled", [0.0, 0.004]), mutants(), LOOK).axes
    assert row(upper, "tiled")[0] == pytest.approx(tick(upper, "0"))
    assert 0 < tick(upper, "0") < 0.004
    assert "dotted: 0, off the scale" in upper.get_xlabel()


def test_only_exact_cases() -> None:
    upper, _ = errors(judged("tiled", [0.0, 0.0]), mutants(), LOOK).axes
    assert row(upper, "tiled") == pytest.approx([tick(upper, "0")] * 2)


def test_a_failed_case_without_a_number_is_beyond_all_others() -> None:
    cases = judged("tiled", [0.5, 40.0, 1.0, 1.0])
    cases.loc[2, "max_abs_error"] = np.nan  # the output held NaN
    cases.loc[3, ["max_abs_error", "tolerance"]] = np.nan  # it raised
    cases.loc[2:, "passed"] = False
    upper, _ = errors(cases, mutants(), LOOK).axes
    assert row(upper, "tiled")[2:] == pytest.approx([tick(upper, "no number")] * 2)
    assert tick(upper, "no number") > 40


def test_an_error_where_none_is_tolerated_is_not_drawn_as_none() -> None:
    cases = judged("tiled", [0.5, 0.5]).assign(tolerance=[1e-6, 0.0], passed=[True, False])
    upper, _ = errors(cases, mutants(), LOOK).axes
    assert row(upper, "tiled")[1] == pytest.approx(tick(upper, "no number"))


def test_a_skipped_case_is_not_drawn() -> None:
    cases = judged("tiled", [0.5, 0.5]).astype({"passed": object})
    cases.loc[1, ["max_abs_error", "tolerance", "passed"]] = [np.nan, np.nan, None]
    upper, _ = errors(cases, mutants(), LOOK).axes
    assert row(upper, "tiled") == pytest.approx([0.5])


def test_planted_faults_have_their_largest_share_by_dtype() -> None:
    _, lower = errors(judged("tiled", [0.5]), mutants(), LOOK).axes
    assert list(labelled(lower, "float32").get_xdata()) == pytest.approx([20, 200])
    assert list(labelled(lower, "bfloat16").get_xdata()) == pytest.approx([10, 100])
    assert list(labelled(lower, "bfloat16").get_ydata()) == [0, 1]
    styles = {labelled(lower, it).get_fillstyle() for it in ("float32", "bfloat16")}
    assert styles == {"full", "none"}
    assert [it.get_text() for it in lower.get_yticklabels()] == ["dropped precision", "wrong mask"]


def test_a_fault_whose_output_is_not_finite_is_drawn() -> None:
    planted = mutants()
    planted.loc[planted["mutant"] == "wrong mask", ["max_abs_error", "passed"]] = [np.nan, False]
    _, lower = errors(judged("tiled", [0.5]), planted, LOOK).axes
    assert labelled(lower, "float32").get_xdata()[1] == pytest.approx(tick(lower, "no number"))


def test_nothing_judged_says_so() -> None:
    skipped = judged("tiled", [0.5]).assign(
        max_abs_error=np.nan, passed=None, status="skipped: too large"
    )
    said = words(errors(skipped, pd.DataFrame(), LOOK))
    assert "No case was judged: too large." in said
    assert "No planted fault was judged: nothing was asked for." in said
