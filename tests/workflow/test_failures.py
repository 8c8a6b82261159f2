"""Wrong kernels, killed runs, bad input and odd places."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from workflow.checkout import SMOKE, Checkout, environment

pytestmark = pytest.mark.workflow

TILED = "src/tiled_attention/implementations/tiled.py"
LONG_TIMING = (
    'overrides=["cpu_timing.sampling.min_rounds=150","cpu_timing.sampling.max_rounds=150"]'
)


def test_a_wrong_kernel_is_reported_and_never_timed(checkout: Checkout) -> None:
    checkout.edit(TILED, "output = output * rescale +", "output = output +")
    shutil.rmtree(checkout.path / "results/local")
    for _ in range(2):  # the second run has nothing new to measure, and fails all the same
        done = checkout.snakemake(*SMOKE)
        assert done.returncode != 0
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1
        assert "tiled fails" in lines[0]
        report = (checkout.path / "reports/local/report.md").read_text()
        assert "**tiled** fails" in report
        assert "not timed: failed correctness" in report
    wrong = {"tiled", "tiled_128"}
    (timing,) = checkout.tables("cpu_timing")
    result = pd.read_csv(timing).set_index("implementation")
    assert result.loc[list(wrong), "median_ms"].isna().all()
    assert result.loc["naive", "median_ms"].notna().all()
    samples = pd.read_csv(timing.with_name("samples.csv"))
    assert not wrong & set(samples["implementation"])
    crossover = pd.read_csv(checkout.tables("crossover")[0]).set_index("implementation")
    assert crossover.loc["tiled", "kind"] == "not identifiable"


@pytest.mark.parametrize("victim", ["the timing step", "snakemake and its jobs"])
def test_killed_in_mid_timing_then_the_same_command_finishes(
    checkout: Checkout, victim: str
) -> None:
    arguments = [*SMOKE, LONG_TIMING]
    run = checkout.start(*arguments)
    timing = wait_for_step(run, "tiled_attention.steps.cpu_timing")
    if victim == "the timing step":
        timing.kill()
        assert run.wait(timeout=60) != 0
    else:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait(timeout=60)
    whole = {path.parent for path in checkout.tables("cpu_timing")}
    found = set((checkout.path / "results/local/cpu_timing").glob("[!.]*"))
    assert all(folder in whole or not any(folder.iterdir()) for folder in found)
    done = checkout.snakemake(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert checkout.planned(*arguments) == {}
    assert len(checkout.tables("cpu_timing")) == len(whole) + 1


def wait_for_step(run: subprocess.Popen[bytes], module: str) -> psutil.Process:
    """Return the step's process once it has worked for a moment."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for process in psutil.Process(run.pid).children(recursive=True):
            try:
                command = process.cmdline()
                if module in command and "python" in Path(command[0]).name:
                    time.sleep(6)  # imports done, rounds begun
                    return process
            except psutil.NoSuchProcess:
                continue
        time.sleep(0.05)
    raise AssertionError(f"{module} did not start")


def test_a_second_run_beside_the_first_is_refused(checkout: Checkout) -> None:
    arguments = [*SMOKE, LONG_TIMING]
    first = checkout.start(*arguments)
    try:
        wait_for_step(first, "tiled_attention.steps.cpu_timing")
        second = checkout.snakemake(*arguments)
        assert second.returncode != 0
        assert "cannot be locked" in second.stdout + second.stderr
    finally:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait(timeout=60)


def test_eight_steps_at_once_keep_apart(checkout: Checkout) -> None:
    command = [sys.executable, "-m", "tiled_attention.steps.crossover", "experiment=smoke"]
    source = {"PYTHONPATH": str(checkout.path / "src")}
    runs = [
        subprocess.Popen(
            [*command, f"crossover.seed={seed}"],
            cwd=checkout.path,
            env=environment() | source,
            stdout=subprocess.DEVNULL,
        )
        for seed in range(8)
    ]
    assert [run.wait(timeout=120) for run in runs] == [0] * 8
    assert len(checkout.tables("crossover")) == 8  # seed 0 was there


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["platform=00123"], "--config platform"),
        (["platform=123e456"], "--config platform"),
        (["platform=a/b"], "platform = 'a/b'"),
        (["plattform=x"], "--config plattform"),
        (["experiment=nope"], "experiment/nope"),
        (['overrides=["cpu_timing.lengths=[-5]"]'], "cpu_timing.lengths[0] = -5"),
        (['overrides=["implementations.tiled.block_size=0"]'], "implementations.tiled.block_size"),
        (['overrides=["cpu_timing.threads=3"]'], "cpu_timing.threads = 3, but --cores is 2"),
        (['overrides=["platform=???"]'], "platform: a value must be given"),
        (["overrides=3"], "--config overrides"),
    ],
)
def test_bad_input_ends_in_one_line_before_any_job(
    finished: Checkout, arguments: list[str], expected: str
) -> None:
    done = finished.snakemake("--cores", "2", "--config", *arguments)
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
    assert expected in done.stderr
    assert "rule" not in done.stdout
    assert str(finished.path) not in done.stderr


def test_odd_paths_and_values_are_no_shell(finished: Checkout, tmp_path: Path) -> None:
    odd = tmp_path / "it's a $(touch boo) test"
    shutil.copytree(finished.path, odd, symlinks=True)
    checkout = Checkout(odd)
    (lost,) = checkout.tables("byte_arithmetic")
    shutil.rmtree(lost.parent)
    value = "a, b='c' | $(touch boo); `touch boo` #{d}"
    override = f'overrides=["devices.h100_80gb.name=\\"{value}\\""]'
    done = checkout.snakemake(*SMOKE, override)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(tmp_path.rglob("boo"))


def test_started_from_another_folder(finished: Checkout, tmp_path: Path) -> None:
    done = finished.snakemake(
        "--snakefile", str(finished.path / "Snakefile"), *SMOKE, cwd=tmp_path
    )
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout + done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.name != ".snakemake"] == []


def test_snakemake_report_and_lint(finished: Checkout, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = finished.snakemake(*SMOKE, "--report", str(page))
    assert done.returncode == 0, done.stderr
    assert page.stat().st_size > 10_000
    assert finished.snakemake("--lint").returncode == 0


def test_timing_uses_its_own_threads_whatever_omp_says(finished: Checkout) -> None:
    (timing,) = finished.tables("cpu_timing")
    threads = pd.read_csv(timing)["threads"].unique()
    assert list(threads) == [len(os.sched_getaffinity(0))]
