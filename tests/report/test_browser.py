"""The committed reports in headless Chromium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tiled_attention.pipeline import FIGURES

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
REPORTS = sorted((Path(__file__).resolve().parents[2] / "reports").glob("*/report.html"))
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
WIDTHS = (400, 1400)


@pytest.fixture(scope="module")
def browser() -> Iterator["playwright.Browser"]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(params=[(path, width) for path in REPORTS for width in WIDTHS], ids=str)
def opened(
    request: pytest.FixtureRequest, browser: "playwright.Browser"
) -> Iterator[tuple["playwright.Page", list[str], list[str]]]:
    """An opened report, its requests and its console errors."""
    path, width = request.param
    page = browser.new_page(viewport={"width": width, "height": 900})
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda it: requests.append(it.url))
    page.on("console", lambda it: errors.append(it.text) if it.type == "error" else None)
    page.on("pageerror", lambda it: errors.append(str(it)))
    page.goto(path.as_uri())
    page.wait_for_load_state("networkidle")
    yield page, requests, errors
    page.close()


def test_there_is_a_committed_report() -> None:
    assert REPORTS


def test_nothing_is_fetched_and_nothing_complains(
    opened: tuple["playwright.Page", list[str], list[str]],
) -> None:
    _, requests, errors = opened
    assert errors == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in requests if url.startswith("file:")]) == 1  # the page itself


def test_every_figure_is_drawn(
    opened: tuple["playwright.Page", list[str], list[str]],
) -> None:
    page, _, _ = opened
    drawn = page.eval_on_selector_all(
        "img", "all => all.map(it => [it.complete, it.naturalWidth, it.clientWidth, it.alt])"
    )
    assert len(drawn) == len(FIGURES)
    for complete, natural, shown, alt in drawn:
        assert complete
        assert natural > 0
        assert shown >= 360
        assert alt


def test_the_page_does_not_scroll_sideways_and_text_is_large_enough(
    opened: tuple["playwright.Page", list[str], list[str]],
) -> None:
    page, _, _ = opened
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sizes = page.eval_on_selector_all(
        "p, li, td, th, h1, h2, h3, small",
        "all => all.map(it => parseFloat(getComputedStyle(it).fontSize))",
    )
    assert min(sizes) >= 12
    # Wide tables scroll inside their own box; the page's text does not run out of it.
    assert page.eval_on_selector_all(
        "h1, h2, h3, p, li", f"all => all.every(it => it.getBoundingClientRect().right <= {width})"
    )
