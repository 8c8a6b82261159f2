"""A step by hand: one result, one line for an error, nothing left behind."""

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tiled_attention.sources import ROOT

STEP = "tiled_attention.steps.byte_arithmetic"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("src", "config"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "copy"


def run(
    copy: Path, *arguments: str, module: str = STEP, **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=copy.parent / "elsewhere",
        env=os.environ | {"PYTHONPATH": str(copy / "src")} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert list((copy.parent / "elsewhere").iterdir()) == []
    assert {path.name for path in copy.iterdir()} <= {"src", "config", "results"}
    return done


def test_a_result_is_made_once(copy: Path) -> None:
    done = run(copy)
    assert done.returncode == 0, done.stderr
    (folder,) = (copy / "results/local/byte_arithmetic").iterdir()
    assert "is written" in done.stdout
    assert "2147483648" in done.stdout
    assert done.stderr == ""
    assert "is there already" in run(copy).stdout
    record = (folder / "provenance.json").read_text()
    assert json.loads(record)["version"] == folder.name
    user = Path(f"/{getpass.getuser()}")
    for private in (socket.gethostname(), str(copy), str(Path.home()), str(user), "/home/"):
        assert private not in record


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cpu_timing.lengths=[-1]"], "cpu_timing.lengths[0] = -1"),
        (["nothing=1"], "nothing"),
        (["--multirun"], "--multirun"),
        (["experiment=nope"], "experiment/nope"),
        (["--cfg", "job", "cpu_timing.lengths=[-1]"], "cpu_timing.lengths[0] = -1"),
        (["--cfg", "job", "~platform"], "platform: a value must be given"),
        (["implementation=null"], "in: implementation=null"),
    ],
)
def test_bad_input_is_one_line(copy: Path, arguments: list[str], said: str) -> None:
    done = run(copy, *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert not (copy / "results").exists()


def test_a_missing_input_is_one_line_with_the_command_that_makes_it(copy: Path) -> None:
    done = run(copy, "experiment=smoke", module="tiled_attention.steps.crossover")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "run `python -m tiled_attention.steps.cpu_timing`" in done.stderr


def test_help_and_config(copy: Path) -> None:
    helped = run(copy, "--help")
    assert helped.returncode == 0
    assert "Byte arithmetic: Table 2" in helped.stdout
    assert "byte_arithmetic" in helped.stdout
    shown = run(copy, "--cfg", "job", "platform=here")
    assert shown.returncode == 0
    assert "platform: here" in shown.stdout


STEPS = sorted(path.stem for path in (ROOT / "src/tiled_attention/steps").glob("[!_]*.py"))


@pytest.mark.parametrize("step", STEPS)
def test_every_step_has_a_help_that_says_what_it_does(copy: Path, step: str) -> None:
    module = f"tiled_attention.steps.{step}"
    first, *_ = (copy / "src/tiled_attention/steps" / f"{step}.py").read_text().splitlines()
    helped = run(copy, "--help", module=module)
    assert helped.returncode == 0
    assert helped.stdout.startswith(first.strip('"'))


def test_a_step_of_one_implementation(copy: Path) -> None:
    module = "tiled_attention.steps.peak_memory"
    done = run(copy, "experiment=smoke", "subject=naive", module=module)
    assert done.returncode == 0, done.stderr
    (folder,) = (copy / "results/local/peak_memory").iterdir()
    record = json.loads((folder / "provenance.json").read_text())
    assert record["subject"] == "naive"
    assert list(record["options"]["implementations"]) == ["naive"]
    assert record["git"] == {"commit": None, "clean": None}


def test_damage_is_one_line(copy: Path) -> None:
    run(copy)
    (folder,) = (copy / "results/local/byte_arithmetic").iterdir()
    (folder / "result.csv").write_text("length\n1\n")
    done = run(copy)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "result.csv is damaged" in done.stderr


def test_no_home_and_no_utf8(copy: Path) -> None:
    done = run(copy, HOME="/nonexistent", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0, done.stderr
