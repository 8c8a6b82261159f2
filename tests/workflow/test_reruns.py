"""What runs again, and what does not."""

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from workflow.checkout import SMOKE, Checkout

pytestmark = pytest.mark.workflow

RENDERED = {"figures": 1, "report": 1}
TILED = "src/tiled_attention/implementations/tiled.py"


def test_second_run_does_nothing_quickly_and_leaves_git_clean(finished: Checkout) -> None:
    begun = time.monotonic()
    done = finished.snakemake(*SMOKE)
    elapsed = time.monotonic() - begun
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout + done.stderr
    assert elapsed < 5
    assert finished.git("status", "--porcelain") == ""


def test_clone_with_shuffled_times_and_no_records_has_nothing_to_do(checkout: Checkout) -> None:
    shutil.rmtree(checkout.path / ".snakemake")
    generator = random.Random(0)
    for path in checkout.path.rglob("*"):
        if ".git" not in path.parts:
            moment = time.time() - generator.uniform(0, 1e6)
            os.utime(path, (moment, moment), follow_symlinks=False)
    assert checkout.planned(*SMOKE) == {}


def test_recorded_platforms_are_complete_on_a_clone(fresh: Checkout) -> None:
    """Those that have a report; results of an older version are shown in others' reports."""
    recorded = sorted(path.name for path in (fresh.path / "reports").iterdir())
    assert recorded, "no platform is recorded"
    for platform in recorded:
        assert fresh.planned("--config", f"platform={platform}") == {}, platform


def test_touch_reruns_nothing(checkout: Checkout) -> None:
    for path in (*checkout.path.glob("src/**/*.py"), *checkout.path.glob("config/**/*.yaml")):
        path.touch()
    for path in checkout.tables("correctness"):
        path.touch()
    assert checkout.planned(*SMOKE) == {}


def test_editing_a_kernel_reruns_exactly_what_depends_on_it(checkout: Checkout) -> None:
    checkout.edit(TILED, '"""One Python loop', '"""A Python loop')
    assert checkout.planned(*SMOKE) == {
        "correctness": 2,  # tiled and tiled_128
        "peak_memory": 2,
        "gate_sensitivity": 1,
        "cpu_timing": 1,
        "crossover": 1,
        "verdict": 1,
        **RENDERED,
    }


def test_going_back_to_the_old_kernel_finds_its_results(checkout: Checkout) -> None:
    checkout.edit(TILED, '"""One Python loop', '"""A Python loop')
    assert "cpu_timing" in checkout.planned(*SMOKE)
    checkout.edit(TILED, '"""A Python loop', '"""One Python loop')
    assert checkout.planned(*SMOKE) == {}


def test_editing_the_template_renders_only_the_report(checkout: Checkout) -> None:
    checkout.edit("src/tiled_attention/report/report.md.j2", "## The claims", "## Claims")
    assert checkout.planned(*SMOKE) == {"report": 1}
    done = checkout.snakemake(*SMOKE)
    assert done.returncode == 0, done.stderr
    assert "## Claims" in (checkout.path / "reports/local/report.md").read_text()
    assert checkout.planned(*SMOKE) == {}


def test_editing_plumbing_measures_nothing(checkout: Checkout) -> None:
    for name in ("program", "store", "provenance", "workflow"):
        path = checkout.path / f"src/tiled_attention/{name}.py"
        path.write_text(path.read_text() + "# edited\n")
    assert set(checkout.planned(*SMOKE)) <= set(RENDERED)


def test_new_options_rerun_only_their_step(checkout: Checkout) -> None:
    override = 'overrides=["crossover.seed=1"]'
    assert checkout.planned(*SMOKE, override) == {"crossover": 1, **RENDERED}


def test_a_lost_result_is_made_again_and_rendered(checkout: Checkout) -> None:
    (lost,) = checkout.tables("crossover")
    shutil.rmtree(lost.parent)
    assert checkout.planned(*SMOKE) == {"crossover": 1, **RENDERED}


def test_a_damaged_result_is_named(checkout: Checkout) -> None:
    (damaged,) = checkout.tables("crossover")
    damaged.write_text(damaged.read_text().replace("naive", "naivf", 1))
    checkout.edit("src/tiled_attention/report/report.md.j2", "## The claims", "## Claims")
    done = checkout.snakemake(*SMOKE)
    assert done.returncode != 0
    assert f"error: {damaged.relative_to(checkout.path)} is damaged" in done.stdout + done.stderr


def test_rendering_twice_gives_the_same_bytes(checkout: Checkout) -> None:
    report = checkout.path / "reports/local"
    before = contents(report)
    shutil.rmtree(report)
    done = checkout.snakemake(*SMOKE)
    assert done.returncode == 0, done.stderr
    assert contents(report) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
