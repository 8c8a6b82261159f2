"""Counted and measured bytes: the arithmetic's own numbers, and every device's level."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plots.tables import LENGTHS, NAMES, TABLE, counted, devices, labelled, peaks, words
from tiled_attention.plots.memory import LABEL_GAP, bytes_by_length, peak_memory, spread
from tiled_attention.plots.style import INK, looks

LOOK = looks(NAMES)
DEVICES = devices({"NVIDIA A100": 80, "AMD MI300X": 192, "NVIDIA H100": 80, "NVIDIA B200": 192})


def test_markers_are_the_counted_bytes_on_their_curves() -> None:
    (axes,) = bytes_by_length(counted(), DEVICES, TABLE, LOOK).axes
    labels = {
        "naive": "naive, S x S",
        "tiled": "tiled, S x block",
        "query_tiled": "query_tiled, block x block",
    }
    for name, label in labels.items():
        points = labelled(axes, label)
        assert points.get_color() == LOOK[name]["color"]
        assert points.get_marker() == LOOK[name]["marker"]
        assert list(points.get_xdata()) == TABLE.lengths
        assert list(points.get_ydata()) == pytest.approx(counted()[f"{name}_bytes"] / 1e9)
        (curve,) = [
            it for it in axes.get_lines()
            if it.get_color() == LOOK[name]["color"] and it is not points
        ]  # fmt: skip
        x, y = curve.get_xdata(), curve.get_ydata()
        assert (min(x), max(x)) == (1024, 262_144)
        on_curve = np.exp(np.interp(np.log(TABLE.lengths), np.log(x), np.log(y)))
        assert on_curve == pytest.approx(points.get_ydata(), rel=0.01)


def test_devices_of_equal_memory_share_one_level() -> None:
    (axes,) = bytes_by_length(counted(), DEVICES, TABLE, LOOK).axes
    assert [it.get_text() for it in axes.texts] == ["80 GB A100, H100", "192 GB B200, MI300X"]
    levels = [it.get_ydata()[0] for it in axes.get_lines() if it.get_color() == INK]
    assert levels == [80, 192]


def test_a_level_beyond_the_curves_is_on_the_axis() -> None:
    small = TABLE.__class__(lengths=[1024], batch=1, heads=1, dtype="bfloat16", block_size=128)
    (axes,) = bytes_by_length(counted(small), devices({"X Y": 9000}), small, LOOK).axes
    assert axes.get_ylim()[0] < 9000 < axes.get_ylim()[1]


@pytest.mark.parametrize("length", [64, 1_000_000])
def test_lengths_beyond_the_usual_ones_are_on_the_axis(length: int) -> None:
    table = TABLE.__class__(lengths=[length], batch=1, heads=1, dtype="float32", block_size=128)
    (axes,) = bytes_by_length(counted(table), DEVICES, table, LOOK).axes
    assert axes.get_xlim()[0] < length < axes.get_xlim()[1]


def test_bytes_without_any_table() -> None:
    figure = bytes_by_length(pd.DataFrame(), pd.DataFrame(), TABLE, LOOK)
    assert "batch 1, 64 heads, bfloat16, blocks of 128" in words(figure)
    assert "GB" in figure.axes[0].get_ylabel()


@given(st.lists(st.floats(-2, 2), max_size=9).map(sorted), st.floats(0.01, 0.2))
def test_spread_keeps_the_order_and_the_gap(positions: list[float], gap: float) -> None:
    moved = spread(np.array(positions), gap)
    assert (np.diff(moved) >= gap - 1e-9).all()
    assert moved.mean() == pytest.approx(np.mean(positions)) if positions else moved.size == 0


def test_spread_leaves_alone_what_is_apart() -> None:
    apart = np.array([0.1, 0.1 + 2 * LABEL_GAP, 0.9])
    assert spread(apart, LABEL_GAP) == pytest.approx(apart)


def test_peaks_are_measured_points_on_lines_of_the_account() -> None:
    measured = peaks()
    (axes,) = peak_memory(measured, LOOK).axes
    own = measured[measured["implementation"] == "sdpa"]
    assert list(labelled(axes, "sdpa").get_ydata()) == pytest.approx(own["measured_bytes"] / 1e6)
    assert labelled(axes, "sdpa").get_linestyle() == "None"
    (account,) = [
        it for it in axes.get_lines()
        if it.get_color() == LOOK["sdpa"]["color"] and it.get_linestyle() != "None"
    ]  # fmt: skip
    assert list(account.get_ydata()) == pytest.approx(own["account_bytes"] / 1e6)
    reference = labelled(axes, "one score matrix")
    assert list(reference.get_ydata()) == pytest.approx([32 * it**2 / 1e6 for it in LENGTHS[:3]])
    assert "MB" in axes.get_ylabel()


def test_a_skipped_peak_has_an_account_and_a_reason() -> None:
    measured = peaks()
    where = (measured["implementation"] == "naive") & (measured["length"] == 2048)
    measured.loc[where, "measured_bytes"] = np.nan
    measured.loc[where, "status"] = "skipped: needs 34.4 GB"
    figure = peak_memory(measured, LOOK)
    assert list(labelled(figure.axes[0], "naive").get_xdata()) == [512, 1024]
    assert "No measurement of naive at S = 2,048: needs 34.4 GB." in words(figure)


def test_no_account_line_crosses_a_length_without_a_row() -> None:
    measured = peaks()
    where = (measured["implementation"] == "sdpa") & (measured["length"] == 1024)
    (axes,) = peak_memory(measured[~where], LOOK).axes
    lines = [it for it in axes.get_lines() if it.get_color() == LOOK["sdpa"]["color"]]
    assert [list(it.get_xdata()) for it in lines if it.get_linestyle() != "None"] == [
        [512],
        [2048],
    ]


def test_no_peak_at_all_says_why() -> None:
    skipped = peaks().assign(measured_bytes=np.nan, status="skipped: needs 34.4 GB")
    assert "No peak was measured: needs 34.4 GB." in words(peak_memory(skipped, LOOK))
    assert "No peak was measured: nothing was asked for." in words(
        peak_memory(pd.DataFrame(), LOOK)
    )
    unknown = peaks().assign(measured_bytes=np.nan)
    assert "No peak was measured: the values are missing." in words(peak_memory(unknown, LOOK))
