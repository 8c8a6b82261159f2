"""The same look in every figure, everything readable, and the same bytes at every rendering."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from plots import tables
from plots.test_bandwidth import POINTS, ROOF
from tiled_attention.gpu_runs import with_rate_interval
from tiled_attention.pipeline import FIGURES
from tiled_attention.plots.bandwidth import bandwidth, roofline
from tiled_attention.plots.crossover import crossover
from tiled_attention.plots.errors import errors
from tiled_attention.plots.gpu import RATE, gpu_platforms, gpu_rates
from tiled_attention.plots.memory import bytes_by_length, peak_memory
from tiled_attention.plots.style import log_ticks, looks, runs_without_gap, save, styled
from tiled_attention.plots.timing import block_cost, ratio_by_length, time_by_length
from tiled_attention.sources import ROOT

IMPLEMENTATIONS = [path.stem for path in (ROOT / "config" / "implementation").glob("*.yaml")]
LOOK = looks(IMPLEMENTATIONS)
DEVICES = tables.devices(
    {"A X1": 24, "A X2": 40, "B X3": 48, "A X4": 80, "B X5": 80, "A X6": 141, "B X7": 192}
)
PUBLISHED = pd.DataFrame({"length": [512, 1024, 2048], "ratio": [1.63, 1.34, 1.01]})
RATIOS = {name: 1 / (1 + index) for index, name in enumerate(sorted(IMPLEMENTATIONS))}
GPU = with_rate_interval(tables.gpu_timing(RATIOS, (512, 1024, 2048, 4096, 8192, 16384)))
FASTER = GPU.assign(**{rate: 2 * GPU[rate] for rate in RATE})
CASES = pd.concat(
    [tables.judged(name, np.linspace(0, 0.6, 40).tolist()) for name in tables.NAMES],
    ignore_index=True,
)


def draw_all() -> dict[str, Figure]:
    results = tables.timing()
    skipped = tables.without(
        results, results["length"] == 8192, "skipped: needs 34.4 GB, 3.2 GB are available"
    )
    beside = [("epyc-zen4 (older version)", results), ("xeon-golden-cove", results)]
    return {
        "time_by_length": time_by_length(skipped, LOOK),
        "ratio_by_length": ratio_by_length(skipped, PUBLISHED, beside, LOOK),
        "crossover": crossover(tables.fits(), results, LOOK),
        "block_cost": block_cost(results, tables.line(), LOOK),
        "bytes_by_length": bytes_by_length(tables.counted(), DEVICES, tables.TABLE, LOOK),
        "peak_memory": peak_memory(tables.peaks(), LOOK),
        "errors": errors(CASES, tables.mutants(), LOOK),
        "gpu_rates": gpu_rates(("a GPU", GPU), LOOK),
        "gpu_platforms": gpu_platforms([("a GPU", GPU), ("another", FASTER)], LOOK),
        "bandwidth": bandwidth(tables.cpu_bandwidth(), {"h200": tables.gpu_bandwidth()}, LOOK),
        "roofline": roofline("h200", POINTS, ROOF, LOOK),
    }


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return draw_all()


def digests() -> dict[str, str]:
    return {
        f"{name}.{kind}": hashlib.sha256(save(figure, kind)).hexdigest()
        for name, figure in draw_all().items()
        for kind in ("svg", "png")
    }


def in_another_process(folder: Path, seed: str) -> dict[str, str]:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import json, plots.test_style as it; print(json.dumps(it.digests()))",
        ],
        env=os.environ
        | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}", "PYTHONHASHSEED": seed}
        | {"MATPLOTLIBRC": str(folder / "matplotlibrc"), "SOURCE_DATE_EPOCH": seed},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_the_same_bytes_in_every_process_whatever_the_users_settings(tmp_path: Path) -> None:
    here = digests()
    assert len(set(here.values())) == 2 * len(FIGURES)
    assert digests() == here
    (tmp_path / "matplotlibrc").write_text(
        "font.size: 22\naxes.xmargin: 0.3\nlegend.handlelength: 9\n"
    )
    assert in_another_process(tmp_path, "1") == here
    (tmp_path / "matplotlibrc").write_text("savefig.bbox: tight\nsvg.fonttype: none\n")
    assert in_another_process(tmp_path, "2") == here


def test_a_file_names_no_time_and_no_version(drawn: dict[str, Figure]) -> None:
    svg, png = (save(drawn["block_cost"], kind) for kind in ("svg", "png"))
    assert b"<dc:date>" not in svg
    assert b"atplotlib v" not in svg
    assert b"Software" not in png


def test_letters_are_outlines(drawn: dict[str, Figure]) -> None:
    svg = save(drawn["block_cost"], "svg")
    assert b"<text" not in svg
    assert b"font-family" not in svg


def test_every_font_comes_with_matplotlib() -> None:
    families = styled(lambda: list(mpl.rcParams["font.sans-serif"]))()
    fonts = [Path(font_manager.findfont(it, fallback_to_default=False)) for it in families]
    assert all(font.is_relative_to(mpl.get_data_path()) for font in fonts)


def test_drawing_leaves_no_setting_behind() -> None:
    before = dict(mpl.rcParams)
    save(draw_all()["errors"], "png")
    assert dict(mpl.rcParams) == before


@styled
def texts(figure: Figure) -> list[tuple[Text, Bbox]]:
    """Every text that is seen, and the pixels that it covers."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    seen = [*figure.texts, *(it for legend in figure.legends for it in legend.get_texts())]
    for axes in figure.axes:
        seen += [axes.title, axes._left_title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
            low, high = sorted(axis.get_view_interval())
            ticks = [it for it in axis.get_major_ticks() if low <= it.get_loc() <= high]
            seen += [axis.label, *(it.label1 for it in ticks)]
    seen = [it for it in seen if it.get_visible() and it.get_text().strip()]
    return [(it, Text.get_window_extent(it, canvas.get_renderer())) for it in seen]


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_is_clipped_small_or_over_another(drawn: dict[str, Figure], name: str) -> None:
    figure = drawn[name]
    found = texts(figure)
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in found:
        assert text.get_fontsize() >= 9, text
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= width, text
        assert box.y1 <= height, text
    for (one, box), (other, its_box) in combinations(found, 2):
        assert not box.padded(-0.5).overlaps(its_box), (one, other)


@pytest.mark.parametrize("name", FIGURES)
def test_no_legend_covers_data(drawn: dict[str, Figure], name: str) -> None:
    figure = drawn[name]
    texts(figure)
    assert not any(axes.get_legend() for axes in figure.axes)
    for legend in figure.legends:
        for axes in figure.axes:
            assert not legend.get_window_extent().overlaps(axes.get_window_extent())


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_as_wide_as_they_are_read(drawn: dict[str, Figure], name: str) -> None:
    assert drawn[name].get_figwidth() == pytest.approx(7.2)
    assert drawn[name].get_figheight() < 7


def test_notes_make_the_figure_higher_and_not_the_axes_lower() -> None:
    results = tables.timing()
    skipped = tables.without(results, results["length"] == 8192, "skipped: too long")
    assert (
        time_by_length(skipped, LOOK).get_figheight()
        > time_by_length(results, LOOK).get_figheight()
    )


EMPTY = {
    "no rows at all": pd.DataFrame,
    "columns without rows": lambda: tables.timing().iloc[:0],
    "all values missing": lambda: tables.without(tables.timing(), tables.timing()["length"] > 0),
}


@pytest.mark.parametrize("results", EMPTY.values(), ids=EMPTY)
def test_without_timings_a_sentence_stands_in_place(results: Callable[[], pd.DataFrame]) -> None:
    for figure in (
        time_by_length(results(), LOOK),
        ratio_by_length(results(), PUBLISHED, [("epyc", tables.timing())], LOOK),
        block_cost(results(), tables.line("not enough data"), LOOK),
    ):
        (axes,) = figure.axes
        assert "No timing" in tables.words(figure)
        assert not axes.axison
        assert not axes.get_lines()
        assert save(figure, "png").startswith(b"\x89PNG")
    panels = crossover(tables.fits(), results(), LOOK)
    assert save(panels, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("cut", [pd.DataFrame, lambda: CASES.iloc[:0]], ids=["none", "no rows"])
def test_without_judgements_a_sentence_stands_in_place(cut: Callable[[], pd.DataFrame]) -> None:
    figure = errors(cut(), tables.mutants().iloc[:0], LOOK)
    assert "No case was judged: nothing was asked for." in tables.words(figure)
    assert save(figure, "png").startswith(b"\x89PNG")


def test_the_counted_implementations_look_the_same_in_any_company() -> None:
    few, many = looks(["sdpa"]), looks([*tables.NAMES, "another", "flex"])
    for name in ("naive", "tiled", "query_tiled"):
        assert few[name] == many[name]


def test_a_look_does_not_depend_on_the_order_of_names() -> None:
    assert looks(tables.NAMES) == looks(reversed(tables.NAMES))


def test_no_two_of_many_implementations_look_the_same() -> None:
    many = looks([f"kernel_{index}" for index in range(60)])
    assert len({(it["color"], it["marker"]) for it in many.values()}) == 63
    few = list(looks([f"kernel_{index}" for index in range(6)]).values())
    assert len({it["marker"] for it in few}) == len({it["color"] for it in few}) == 9
    assert "D" not in {it["marker"] for it in few}  # the article's


def test_runs_end_where_a_length_is_missing() -> None:
    assert runs_without_gap([1, 2, 4, 8, 16], [16, 1, 2, 8]) == [[1, 2], [8, 16]]
    assert runs_without_gap([1, 2, 4], []) == []
    assert runs_without_gap([4, 1, 4, 2], [1, 4]) == [[1], [4]]


@given(st.floats(-6, 6), st.floats(0.02, 12), st.integers(4, 10))
def test_ticks_are_few_and_inside(start: float, decades: float, most: int) -> None:
    low, high = 10**start, 10 ** (start + decades)
    ticks = log_ticks(low, high, most)
    assert all(low <= tick <= high for tick in ticks)
    assert all(one < other for one, other in pairwise(ticks))
    assert len(ticks) <= most + 3
    assert len(ticks) >= 2 or decades >= most / 3


@pytest.mark.parametrize("ends", [(0.3, 1.3), (0.05, 4), (0.7, 1.1), (1e-3, 1e3)])
def test_a_ratio_of_1_has_a_tick(ends: tuple[float, float]) -> None:
    assert any(tick == pytest.approx(1) for tick in log_ticks(*ends))
