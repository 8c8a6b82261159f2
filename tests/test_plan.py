"""A version follows what the numbers depend on, and nothing else."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tiled_attention.pipeline import FIGURES, MEASURED
from tiled_attention.plan import make_plan
from tiled_attention.sources import ROOT

PRINT_VERSIONS = """
import json, sys
from tiled_attention.plan import make_plan
plan = make_plan(sys.argv[1:])
versions = {f"{it.step} {it.subject or ''}".strip(): it.version for it in plan.all_results()}
versions |= {step: it.version for step, it in plan.rendered.items()}
print(json.dumps([versions, [name for name in ("torch", "pandas") if name in sys.modules]]))
"""


def versions(root: Path, *overrides: str, seed: str = "0", cwd: str = "/") -> dict[str, str]:
    """Return every version that the checkout at `root` plans, from a fresh process."""
    done = subprocess.run(
        [sys.executable, "-c", PRINT_VERSIONS, *overrides],
        env=os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONHASHSEED": seed},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    planned, heavy = json.loads(done.stdout)
    assert heavy == [], f"planning imports {heavy}"
    return planned


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    left_out = shutil.ignore_patterns("__pycache__", "local")
    for name in ("src", "config", "results"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    return tmp_path


@pytest.fixture
def changed(copy: Path) -> Callable[[str, str], set[str]]:
    """Append a line to a file of a copy; return whose versions changed, and put it back."""

    def changed(file: str, line: str = "# edited\n") -> set[str]:
        before = versions(copy)
        path = copy / file
        text = path.read_text()
        path.write_text(text + line)
        after = versions(copy)
        path.write_text(text)
        assert versions(copy) == before
        return {name for name in before if before[name] != after[name]}

    return changed


RENDERED = {"figures", "report"}
EACH = ("naive", "query_tiled", "sdpa", "tiled", "tiled_128")


def test_versions_are_the_same_everywhere(copy: Path) -> None:
    here = versions(ROOT)
    assert versions(copy, seed="1", cwd="/tmp") == here
    assert all(len(version) == 12 for version in here.values())


def test_a_kernel_changes_exactly_what_uses_it(changed: Callable[..., set[str]]) -> None:
    of_tiled = {f"{step} {name}" for step in ("correctness", "peak_memory") for name in EACH[3:]}
    assert changed("src/tiled_attention/implementations/tiled.py") == {
        *of_tiled,
        "gate_sensitivity",
        "cpu_timing",
        "crossover",
        "verdict",
        *RENDERED,
    }


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("report/report.md.j2", {"report"}),
        ("report/claims.py", {"report"}),
        ("plots/memory.py", RENDERED),
        ("article/article.yaml", RENDERED),
        ("steps/crossover.py", {"crossover", *RENDERED}),
        ("steps/byte_arithmetic.py", {"byte_arithmetic", *RENDERED}),
        ("steps/verdict.py", {"verdict"}),
        ("results/list.py", set()),
        ("workflow.py", set()),
        ("config.py", RENDERED),
    ],
)
def test_an_edit_changes_only_its_own(
    changed: Callable[..., set[str]], file: str, expected: set[str]
) -> None:
    assert changed(f"src/tiled_attention/{file}") == expected


@pytest.mark.parametrize("file", ["program", "store", "provenance", "plan", "compose", "sources"])
def test_plumbing_measures_nothing(changed: Callable[..., set[str]], file: str) -> None:
    assert changed(f"src/tiled_attention/{file}.py") <= RENDERED


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("cpu_timing.sampling.max_rounds=50", {"cpu_timing", "crossover"}),
        ("crossover.seed=3", {"crossover"}),
        ("byte_arithmetic.fit.heads=[8]", {"byte_arithmetic"}),
        ("devices.h100_80gb.memory=81", {"byte_arithmetic"}),
        ("gate_sensitivity.seeds=[3]", {"gate_sensitivity", "verdict"}),
        (
            "implementations.sdpa._target_=tiled_attention.implementations.naive.Naive",
            {"correctness sdpa", "peak_memory sdpa", "cpu_timing", "crossover", "verdict"},
        ),
    ],
)
def test_an_option_changes_only_its_own(override: str, expected: set[str]) -> None:
    before, after = versions(ROOT), versions(ROOT, override)
    assert {name for name in before if before[name] != after[name]} == expected | RENDERED


def test_platform_and_subject_are_no_part_of_a_version() -> None:
    before, after = make_plan([]), make_plan(["platform=elsewhere", "subject=tiled"])
    assert [it.version for it in before.all_results()] == [
        it.version for it in after.all_results()
    ]
    assert after.folder("crossover").parts[-3:-1] == ("elsewhere", "crossover")


def test_commands_can_be_pasted() -> None:
    overrides = ["platform=elsewhere", 'devices.h100_80gb.name="it\'s; $(this)"']
    plan = make_plan(overrides)
    words = shlex.split(plan.command("crossover"))
    assert words == ["python", "-m", "tiled_attention.steps.crossover", *overrides]
    *words, value = shlex.split(plan.command(None))
    assert words == ["snakemake", "--cores", "4", "--config", "platform=elsewhere"]
    assert json.loads(value.removeprefix("overrides=")) == overrides[1:]
    assert make_plan([]).command(None) == "snakemake --cores 4"


def test_a_version_that_is_not_planned_is_a_key_error() -> None:
    plan = make_plan([])
    planned = plan.results["correctness"][1]
    assert plan.find("correctness", planned.version) is planned
    with pytest.raises(KeyError):
        plan.find("correctness", "0" * 12)


def test_measured_steps_come_before_what_reads_them() -> None:
    plan = make_plan([])
    order = list(plan.results)
    for planned in plan.all_results():
        assert all(order.index(it.step) < order.index(planned.step) for it in planned.reads)
    assert set(MEASURED) | {"verdict"} == set(order)
    assert len(plan.figure_files()) == 2 * len(FIGURES)
