"""Bandwidth by working set, and the roofline."""

import pandas as pd
import pytest

from plots import tables
from tiled_attention.plots.bandwidth import bandwidth, in_units, roofline
from tiled_attention.plots.style import looks

LOOK = looks(["naive", "tiled", "triton_flash"])
POINTS = pd.DataFrame(
    {"implementation": ["naive", "triton_flash"], "length": [4096, 4096],
     "flop_per_byte": [50.0, 2000.0], "tflops": [120.0, 500.0]}
)  # fmt: skip
ROOF = {"tflops": 700.0, "gb_per_s": 4000.0}


def test_a_line_for_each_number_of_cores_and_each_way_to_read_a_gpu() -> None:
    (axes,) = bandwidth(tables.cpu_bandwidth(), {"h200": tables.gpu_bandwidth()}, LOOK).axes
    handles, labels = axes.get_legend_handles_labels()
    assert labels == ["CPU, 1 core", "CPU, 2 cores", "h200: shared memory",
                      "h200: device memory and its caches"]  # fmt: skip
    both_cores = handles[1].lines[0].get_xydata().tolist()
    assert both_cores == [[2 * 2**14, 200.0], [2 * 2**28, 10.0]]


def test_an_interpreted_gpu_has_no_line() -> None:
    interpreted = pd.DataFrame([{"read_from": "shared memory", "status": "not measured"}])
    (axes,) = bandwidth(tables.cpu_bandwidth([1]), {"here": interpreted}, LOOK).axes
    assert axes.get_legend_handles_labels()[1] == ["CPU, 1 core"]


@pytest.mark.parametrize(
    ("size", "text"), [(512, "512 B"), (2**16, "64 KiB"), (2**20, "1 MiB"), (2**32, "4 GiB")]
)
def test_sizes_in_units(size: int, text: str) -> None:
    assert in_units(size) == text


def test_no_point_lies_over_the_roof_that_is_drawn() -> None:
    (axes,) = roofline("h200", POINTS, ROOF, LOOK).axes
    roof = axes.lines[0].get_xydata()
    assert roof[:, 1].max() == 700.0
    slope = roof[roof[:, 0] < 100][:, 1] / roof[roof[:, 0] < 100][:, 0]
    assert slope == pytest.approx(4.0)  # 4 TB/s: 4 TFLOP/s for each FLOP per byte
    assert "h200" in axes.get_title(loc="left")


def test_a_sentence_without_counters() -> None:
    (axes,) = roofline(None, POINTS[:0], None, LOOK).axes
    assert "hardware counters" in axes.texts[0].get_text().replace("\n", " ")
