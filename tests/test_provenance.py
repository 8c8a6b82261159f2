"""Provenance says with what a result was measured, and nothing about who or where."""

import getpass
import json
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tiled_attention import provenance
from tiled_attention.sources import ROOT


def test_times_are_utc() -> None:
    now = datetime.fromisoformat(provenance.now())
    assert now.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - now) < timedelta(seconds=5)


def test_machine_and_software() -> None:
    machine = provenance.machine()
    assert machine["cpu"]
    assert 1 <= machine["usable_threads"] <= machine["threads"]
    assert machine["memory_bytes"] > 10**8
    software = provenance.software()
    assert software["python"] == ".".join(map(str, sys.version_info[:3]))
    assert software["torch"].startswith("2.")


def test_a_package_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "PACKAGES", ("numpy", "no-such-package"))
    software = provenance.software()
    assert software["no-such-package"] is None
    assert re.match(r"\d+\.\d+", software["numpy"] or "")


def test_no_name_and_no_path() -> None:
    record = [provenance.machine(), provenance.software(), provenance.source_control()]
    text = json.dumps(record)
    for private in (socket.gethostname(), str(ROOT), str(Path.home()), "/home/"):
        assert private not in text
    assert not re.search(rf"\b{re.escape(getpass.getuser())}\b", text)


@pytest.mark.parametrize("path", sorted(ROOT.glob("results/*/*/*/provenance.json")), ids=str)
def test_committed_results_hold_no_name_and_no_path(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r'"/|/home/|/root|/tmp|/Users/|\\\\', text)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "kernel.py").write_text("")
    return tmp_path


def git(repository: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    command = ["git", *identity, *arguments]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_no_git_is_unknown(repository: Path) -> None:
    assert provenance.source_control() == {"commit": None, "clean": None}


def test_commit_and_whether_the_source_is_as_in_it(repository: Path) -> None:
    git(repository, "init", "--quiet")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "first")
    commit = git(repository, "rev-parse", "HEAD")
    assert provenance.source_control() == {"commit": commit, "clean": True}
    (repository / "notes.txt").write_text("not source")
    assert provenance.source_control()["clean"] is True
    (repository / "src" / "another.py").write_text("")
    assert provenance.source_control() == {"commit": commit, "clean": False}
    (repository / "src" / "another.py").unlink()
    (repository / "src" / "kernel.py").write_text("edited\n")
    assert provenance.source_control() == {"commit": commit, "clean": False}
