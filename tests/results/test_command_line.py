"""The command line itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tiled_attention.results.__main__ import main
from tiled_attention.sources import ROOT
from tiled_attention.store import write

COMMANDS = ("list", "show", "diff", "prune")


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    expected = {"list": "--step", "show": "PLATFORM/VERSION", "diff": "--rows", "prune": "--yes"}
    for part in [expected[name] for name in command] or COMMANDS:
        assert part in said


@pytest.mark.parametrize(
    "arguments",
    [[], ["nope"], ["show"], ["diff", "aaaa"], ["show", "aaaa", "--rows", "-1"], ["list", "-x"]],
)
def test_a_wrong_command_line_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m tiled_attention.results" in capsys.readouterr().err


def test_a_bad_override_is_one_line(run) -> None:
    for command in ("list", "prune"):
        assert "cpu_timing.seed = -1" in run(command, "cpu_timing.seed=-1", code=2)


@pytest.fixture
def copy(tmp_path: Path, put) -> Path:
    """A copy of the source with one result, in whose table is more than ASCII."""
    for name in ("src", "config"):
        shutil.copytree(ROOT / name, tmp_path / "copy" / name)
    record = put("aaaa1111").provenance
    table = pd.DataFrame({"status": ["2 × 2 → σ"], "length": [1]})
    write(tmp_path / "copy/results/local/cpu_timing/aaaa1111", {"result": table}, record)
    return tmp_path / "copy"


def shell(copy: Path, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy / "src"), "python": sys.executable} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_reader_that_stops_early_is_no_error(copy: Path) -> None:
    done = shell(copy, '"$python" -m tiled_attention.results show aaaa1111 | true')
    assert (done.returncode, done.stderr) == (0, "")


def test_a_locale_without_utf8(copy: Path) -> None:
    poor = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = shell(copy, '"$python" -m tiled_attention.results show aaaa1111', **poor)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 ? 2 ? ?" in done.stdout
    assert {path.name for path in copy.iterdir()} == {"src", "config", "results"}
