"""Rates on GPUs: one line an implementation, one a platform, and a sentence where nothing is."""

import pytest

from plots import tables
from tiled_attention.gpu_runs import with_rate_interval
from tiled_attention.plots.gpu import NOTHING, gpu_platforms, gpu_rates
from tiled_attention.plots.style import looks

RATIOS = {"naive": 1.0, "tiled": 4.0, "triton_flash": 0.2}
LOOK = looks(RATIOS)
RUN = with_rate_interval(tables.gpu_timing(RATIOS))


def test_a_panel_for_each_head_dim_and_causality() -> None:
    figure = gpu_rates(("h200", RUN), LOOK)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [
        f"head_dim {head_dim}, {causal}"
        for head_dim in (64, 128)
        for causal in ("not causal", "causal")
    ]
    for axes in figure.axes:
        _, labels = axes.get_legend_handles_labels()
        assert set(labels) == set(RATIOS)
    assert "h200" in figure.get_suptitle()


def test_what_was_not_timed_is_no_point() -> None:
    rows = tables.without(RUN, RUN["length"] == 2048, "skipped: needs 80 GB")
    figure = gpu_rates(("h200", rows), LOOK)
    drawn = [line for line in figure.axes[0].lines if len(line.get_xdata())]
    assert all(len(line.get_xdata()) == 1 for line in drawn)  # no line across the gap


def test_one_line_a_platform() -> None:
    faster = with_rate_interval(tables.gpu_timing({"triton_flash": 0.1}))
    figure = gpu_platforms([("h200", RUN), ("b200", faster)], LOOK)
    (axes,) = figure.axes
    _, labels = axes.get_legend_handles_labels()
    assert labels == ["h200", "b200"]
    assert "head_dim 128, not causal" in axes.get_xlabel()


@pytest.mark.parametrize("runs", [[], [("h200", RUN[RUN["implementation"] == "naive"])]])
def test_a_sentence_where_nothing_was_timed(runs: list) -> None:
    (axes,) = gpu_platforms(runs, LOOK).axes
    assert axes.texts[0].get_text().replace("\n", " ") == NOTHING
    (axes,) = gpu_rates(None, LOOK).axes
    assert axes.texts[0].get_text().replace("\n", " ") == NOTHING
