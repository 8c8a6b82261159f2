"""What the Snakefile asks, without a Snakemake run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiled_attention import workflow
from tiled_attention.compose import ConfigError, composed

HOLD_LOCK = """
import fcntl, os, sys
handle = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(handle, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, []),
        ({"platform": "00123"}, ['platform="00123"']),
        ({"experiment": "smoke", "platform": "x"}, ['experiment="smoke"', 'platform="x"']),
        ({"overrides": ["a=1", "b=2"]}, ["a=1", "b=2"]),
        ({"overrides": "a=1"}, ["a=1"]),
    ],
)
def test_config_becomes_overrides(config: dict, expected: list[str]) -> None:
    assert workflow.hydra_overrides(config) == expected


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"plattform": "x"}, "--config plattform: no such key"),
        ({"platform": 123}, "--config platform: read as 123"),
        ({"platform": float("inf")}, "--config platform: read as inf"),
        ({"experiment": True}, "--config experiment: read as True"),
        ({"overrides": 3}, "--config overrides"),
        ({"overrides": ["a=1", 2]}, "--config overrides"),
        ({"overrides": {"a": 1}}, "--config overrides"),
    ],
)
def test_what_is_no_text_is_refused(config: dict, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        workflow.hydra_overrides(config)
    assert "\n" not in str(caught.value)


@given(st.text(st.characters(codec="ascii"), max_size=12))
def test_a_name_is_refused_or_reaches_hydra_as_it_is(name: str) -> None:
    try:
        overrides = workflow.hydra_overrides({"platform": name})
        platform = composed(overrides).platform
    except ConfigError:
        assert not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name)
    else:
        assert platform == name


def test_a_job_is_told_its_implementation() -> None:
    experiment = workflow.Experiment({"overrides": ["cpu_timing.seed=1"]}, cores=4)
    planned = experiment.plan.results["correctness"][-1]
    output = experiment.result("correctness")
    program = "python -m tiled_attention.steps"
    assert experiment.command({"version": planned.version}, output) == (
        f"{program}.correctness cpu_timing.seed=1 subject={planned.subject}"
    )
    for step in ("cpu_timing", "crossover", "verdict"):
        command = experiment.command({}, experiment.result(step))
        assert command == f"{program}.{step} cpu_timing.seed=1"
    assert experiment.command({}, experiment.figures) == f"{program}.figures cpu_timing.seed=1"
    assert experiment.command({}, experiment.report) == f"{program}.report cpu_timing.seed=1"


def test_a_gpu_job_is_told_its_own_platform_of_many() -> None:
    experiment = workflow.Experiment({"platforms": ["h200", "a100"]}, cores=4)
    wildcards = SimpleNamespace(platform="a100")
    command = experiment.command(vars(wildcards), experiment.result("gpu_timing"))
    assert command.endswith("""gpu_timing 'platforms=["h200","a100"]' 'platforms=["a100"]'""")
    read = experiment.read_by("gpu_timing")(wildcards)
    assert len(read) == len(experiment.plan.results["gpu_correctness"]) / 2
    assert all(path.startswith("results/a100/gpu_correctness/") for path in read)
    (alone,) = composed(shlex.split(command)[3:]).platforms
    assert alone == "a100"


def test_a_gpu_job_asks_for_what_its_platform_says() -> None:
    experiment = workflow.Experiment({}, cores=4)
    of_platform = experiment.gpu_resources["gpu_model"]
    assert of_platform(SimpleNamespace(platform="a100")) == "a100"
    assert of_platform(SimpleNamespace(platform="local")) == ""


NASTY = [
    "a, b",
    "it's",
    'say "this"',
    "a = b",
    "# no comment",
    "a | b; c && d",
    "$(touch boo) `touch boo` $HOME",
    "{a} {{b}} {output}",
]


def test_nasty_text_reaches_a_step_as_it_is(tmp_path: Path) -> None:
    devices = sorted(composed([]).devices)
    quoted = [text.replace('"', '\\"') for text in NASTY]
    overrides = [
        f'devices.{device}.name="{text}"' for device, text in zip(devices, quoted, strict=True)
    ]
    experiment = workflow.Experiment({"overrides": overrides}, cores=4)
    names = [device.name for device in experiment.plan.config.devices.values()]
    assert sorted(names) == sorted(NASTY)
    command = experiment.command({}, experiment.result("crossover"))
    arguments = command.removeprefix("python -m tiled_attention.steps.crossover ")
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {arguments}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\0")[:-1] == overrides
    assert list(tmp_path.iterdir()) == []


def test_more_threads_than_cores_stop_the_run() -> None:
    with pytest.raises(SystemExit, match=r"error: cpu_timing.threads = 4, but --cores is 2"):
        workflow.Experiment({"overrides": ["cpu_timing.threads=4"]}, cores=2)


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(workflow, "ROOT", tmp_path)
    folder = tmp_path / ".snakemake"
    (folder / "locks").mkdir(parents=True)
    (folder / "incomplete" / "deep").mkdir(parents=True)
    (folder / "locks" / "0.input.lock").write_text("x")
    return folder


def left(folder: Path) -> list[str]:
    return [path.name for name in ("locks", "incomplete") for path in (folder / name).iterdir()]


def test_locks_of_a_dead_run_are_cleared(traces: Path) -> None:
    workflow.clear_traces_of_killed_runs()
    assert left(traces) == []


def test_locks_of_a_live_run_are_kept(traces: Path) -> None:
    live = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(traces / "alive")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert live.stdout is not None
    live.stdout.readline()
    workflow.clear_traces_of_killed_runs()
    assert left(traces) == ["0.input.lock", "deep"]
    live.kill()
    live.wait()
    workflow.clear_traces_of_killed_runs()
    assert left(traces) == []


def test_jobs_run_this_checkout_with_this_python() -> None:
    environment = workflow.job_environment()
    assert environment["PYTHONPATH"].split(os.pathsep)[0] == str(workflow.SRC)
    assert environment["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
