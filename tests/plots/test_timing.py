"""Times, ratios and the cost of a block: every value where it belongs, no line across a gap."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from plots.tables import LENGTHS, NAMES, joined, labelled, line, timing, without, words
from tiled_attention.plots.style import GREY, dodge, looks, save
from tiled_attention.plots.timing import block_cost, ratio_by_length, time_by_length

LOOK = looks(NAMES)
PUBLISHED = pd.DataFrame({"length": [512, 1024, 2048], "ratio": [1.63, 1.34, 1.01]})
NOTHING = pd.DataFrame({"length": [], "ratio": []})


def spans(container: Any) -> list[tuple[float, float]]:
    """The low and high end of each error bar."""
    (bars,) = container.lines[2]
    return [(ends[0][1], ends[1][1]) for ends in bars.get_segments()]


def test_time_has_medians_and_intervals_at_the_lengths() -> None:
    results = timing()
    figure = time_by_length(results, LOOK)
    (axes,) = figure.axes
    drawn = labelled(axes, "sdpa")
    own = results.query("implementation == 'sdpa' and series == 'lengths'")
    assert drawn.lines[0].get_ydata() == pytest.approx(own["median_ms"])
    assert drawn.lines[0].get_xdata() == pytest.approx(own["length"], rel=0.1)
    ends = list(zip(own["ci_low_ms"], own["ci_high_ms"], strict=True))
    assert np.array(spans(drawn)) == pytest.approx(np.array(ends))
    assert [it.get_text() for it in axes.get_xticklabels()] == [
        "8,192", "4,096", "2,048", "1,024", "512"
    ]  # fmt: skip
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "(ms)" in axes.get_ylabel()
    assert "(tokens)" in axes.get_xlabel()


def test_intervals_at_one_length_stand_side_by_side() -> None:
    shifts = dodge(LENGTHS, 5)
    assert shifts == sorted(set(shifts))
    assert np.prod(shifts) == pytest.approx(1)
    assert dodge([512], 1) == [1.0]


@pytest.mark.parametrize("ratio", [False, True])
def test_no_line_crosses_a_length_without_a_time(ratio: bool) -> None:
    results = timing()
    gap = (results["implementation"] == "tiled") & (results["length"] == 2048)
    results = without(results, gap, "skipped: needs 34.4 GB, 3.2 GB are available")
    figure = (
        ratio_by_length(results, PUBLISHED, [], LOOK) if ratio else time_by_length(results, LOOK)
    )
    (axes,) = figure.axes
    assert joined(axes, LOOK["tiled"]["color"]) == [[512, 1024], [4096, 8192]]
    assert joined(axes, LOOK["sdpa"]["color"]) == [list(LENGTHS)]
    assert "of tiled at S = 2,048: needs 34.4 GB, 3.2 GB are available." in words(figure)


@pytest.mark.parametrize("ratio", [False, True])
def test_an_implementation_that_failed_is_named_and_not_drawn(ratio: bool) -> None:
    results = timing()
    reason = "not timed: failed correctness in 3 of 200 cases"
    results = without(results, results["implementation"] == "tiled", reason)
    figure = (
        ratio_by_length(results, NOTHING, [], LOOK) if ratio else time_by_length(results, LOOK)
    )
    (axes,) = figure.axes
    assert "tiled" not in axes.get_legend_handles_labels()[1]
    assert joined(axes, LOOK["tiled"]["color"]) == []
    assert "of tiled: failed correctness in 3 of 200 cases." in words(figure)


def test_one_reason_is_said_once_for_all_that_share_it() -> None:
    results = timing()
    long = results["length"] == 8192
    said = words(time_by_length(without(results, long, "skipped: too long"), LOOK))
    assert f"No time of {', '.join(NAMES)} at S = 8,192: too long." in said
    assert said.count("too long") == 1


def test_ratio_has_its_reference_the_article_and_no_line_for_naive() -> None:
    (axes,) = ratio_by_length(timing(), PUBLISHED, [], LOOK).axes
    assert set(labelled(axes, "naive").get_ydata()) == {1}
    assert joined(axes, LOOK["naive"]["color"]) == []
    article = labelled(axes, "tiled, article")
    assert list(article.get_xdata()) == [512, 1024, 2048]
    assert list(article.get_ydata()) == [1.63, 1.34, 1.01]
    assert (article.get_marker(), article.get_fillstyle(), article.get_color()) == (
        "D", "none", GREY
    )  # fmt: skip
    own = labelled(axes, "tiled")
    assert own.lines[0].get_ydata() == pytest.approx([0.7] * len(LENGTHS))
    assert np.array(spans(own)) == pytest.approx(np.array([[0.665, 0.77]] * len(LENGTHS)))


def test_of_another_platform_only_tiled_is_drawn_without_crossing_a_gap() -> None:
    other = timing(lengths=[512, 2048, 4096, 16384])
    beside = [("epyc (older version)", other), ("xeon", timing())]
    (axes,) = ratio_by_length(timing(), PUBLISHED, beside, LOOK).axes
    labels = axes.get_legend_handles_labels()[1]
    assert [it for it in labels if " on " in it] == [
        "tiled on epyc (older version)",
        "tiled on xeon",
    ]
    assert joined(axes, GREY) == [[2048, 4096], list(LENGTHS)]  # 1024 and 8192 are ours
    dashes = {
        labelled(axes, f"tiled on {it}").lines[0].get_linestyle()
        for it in ("epyc (older version)", "xeon")
    }
    assert len(dashes) == 2
    assert "16,384" in [it.get_text() for it in axes.get_xticklabels()]


def test_a_platform_without_any_time_of_tiled_leaves_no_trace() -> None:
    other = timing()
    other = without(other, other["implementation"] == "tiled", "not timed: failed")
    (axes,) = ratio_by_length(
        timing(), NOTHING, [("epyc", other), ("new", pd.DataFrame())], LOOK
    ).axes
    assert not [it for it in axes.get_legend_handles_labels()[1] if " on " in it]


def test_ratio_says_when_only_naive_is_missing() -> None:
    results = timing()
    baseline = results["implementation"] == "naive"
    results.loc[results["length"] == 8192, ["ratio_to_naive", "ratio_ci_low", "ratio_ci_high"]] = (
        np.nan
    )
    results = without(results, baseline & (results["length"] == 8192), "skipped: needs 9 GB")
    said = words(ratio_by_length(results, NOTHING, [], LOOK))
    assert "No ratio of naive at S = 8,192: needs 9 GB." in said
    assert "tiled_128 at S = 8,192: naive has no time there." in said


def test_without_any_ratio_the_reason_is_said() -> None:
    said = words(ratio_by_length(timing(names=["naive"]), PUBLISHED, [], LOOK))
    assert "No timing: there is no other than naive." in said


def test_a_reason_is_text_whatever_it_holds() -> None:
    results = timing()
    results = without(
        results, results["length"] > 0, r"skipped: $x_$ \frac{ <b> & " + "long " * 99
    )
    for figure in (
        time_by_length(results, LOOK),
        ratio_by_length(results, PUBLISHED, [], LOOK),
        block_cost(results, line(), LOOK),
    ):
        assert r"$x_$ \frac{ <b> &" in words(figure)
        assert "long ..." in words(figure)
        assert save(figure, "svg").startswith(b"<?xml")


def test_block_cost_has_points_line_and_slope() -> None:
    figure = block_cost(timing(), line(), LOOK)
    (axes,) = figure.axes
    points = labelled(axes, "tiled, median and interval").lines[0]
    assert list(points.get_xdata()) == [8, 16, 32, 64]
    assert list(points.get_ydata()) == pytest.approx([10.8, 11.6, 13.2, 16.4])
    fitted = labelled(axes, "100 [80, 130] µs a block, R² = 0.99")
    assert list(fitted.get_ydata()) == pytest.approx([10.8, 16.4])
    fan = axes.collections[-1].get_paths()[0].vertices
    assert fan[fan[:, 0] == 64, 1].max() - fan[fan[:, 0] == 64, 1].min() == pytest.approx(
        0.05 * 34
    )
    assert [it.get_text() for it in axes.texts] == ["128", "64", "32", "16"]
    assert "(ms)" in axes.get_ylabel()


def test_block_cost_without_a_fit_shows_the_points_and_says_why() -> None:
    status = "not enough data: fewer than three block sizes"
    for fitted in (line(status), pd.DataFrame()):
        figure = block_cost(timing(block_sizes=[32, 64]), fitted, LOOK)
        (axes,) = figure.axes
        assert axes.get_legend_handles_labels()[1] == ["tiled, median and interval"]
        assert "No line: " in words(figure)
    assert "No line: fewer than three block sizes" in words(
        block_cost(timing(block_sizes=[32, 64]), line(status), LOOK)
    )


def test_a_wide_slope_interval_leaves_the_measurements_their_axis() -> None:
    wild = line().assign(ci_low=-50.0, ci_high=500.0)
    (axes,), (calm,) = (
        block_cost(timing(), wild, LOOK).axes,
        block_cost(timing(), line(), LOOK).axes,
    )
    assert axes.get_ylim() == calm.get_ylim()


def test_block_cost_without_a_sweep_says_so() -> None:
    said = words(block_cost(timing(block_sizes=[]), line("not enough data: none"), LOOK))
    assert "No timing of a block sweep: nothing was asked for." in said
