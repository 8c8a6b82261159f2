"""The results on the command line."""

import os
import time
from pathlib import Path

import pandas as pd
import pytest

from tiled_attention import results
from tiled_attention.plan import make_plan
from tiled_attention.store import Stored, exists, write

RECORD = {
    "subject": None,
    "started": "2026-01-01T00:00:00+00:00",
    "ended": "2026-01-01T00:00:01+00:00",
    "machine": {"cpu": "a CPU", "cores": 2},
    "software": {"torch": "2.13.0"},
    "git": {"commit": "0123456789abcdef", "clean": False},
    "options": {"cpu_timing": {"seed": 0}},
    "reads": [],
    "sources": {"tiled_attention/x.py": "aaaaaaaaaaaaaaaa"},
}
ROWS = {"series": "lengths", "implementation": ["naive", "tiled"], "length": 512}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    return tmp_path


def put(root: Path, version: str, step: str = "cpu_timing", **changed: object) -> Stored:
    times = changed.pop("times", [1.0, 2.0])
    table = pd.DataFrame(ROWS | {"median_ms": times})
    record = RECORD | {"step": step, "version": version} | changed
    return write(root / "local" / step / version, {"result": table}, record)


def run(*arguments: str) -> int:
    return results.main(list(arguments))


def test_nothing_to_list(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list") == 0
    assert capsys.readouterr().out == "no results\n"


def test_list_tells_current_older_and_damaged(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    current = make_plan([]).results["cpu_timing"][0].version
    put(root, current)
    put(root, "123e456")
    put(root, "00123")
    (root / "local" / "cpu_timing" / "00123" / "provenance.json").write_text("{")
    assert run("list") == 0
    lines = capsys.readouterr().out.splitlines()
    states = {line.split()[3]: line.split()[-1] for line in lines[1:]}
    assert states == {current: "current", "123e456": "older", "00123": "damaged"}
    assert any("0123456789+" in line for line in lines)


@pytest.mark.parametrize("version", ["695e0514", "123e456", "00123"])
def test_versions_are_text(root: Path, capsys: pytest.CaptureFixture[str], version: str) -> None:
    put(root, version)
    assert run("show", version) == 0
    assert f"cpu_timing/{version}" in capsys.readouterr().out or exists(
        root / "local" / "cpu_timing" / version
    )
    assert results.find(version[:4]).version == version


@pytest.mark.parametrize(
    ("asked", "reason"),
    [("abc", "at least 4 characters"), ("ffff", "no such version"), ("aaaa", "is ambiguous")],
)
def test_show_says_what_is_wrong(
    root: Path, capsys: pytest.CaptureFixture[str], asked: str, reason: str
) -> None:
    put(root, "aaaa1111")
    put(root, "aaaa2222")
    assert run("show", asked) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert said.count("\n") == 1


def test_damage_is_one_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = put(root, "aaaa1111")
    (stored.folder / "result.csv").write_text("a\n1\n")
    assert run("show", "aaaa1111") == 2
    said = capsys.readouterr().err
    assert "result.csv is damaged" in said
    assert said.count("\n") == 1


def test_diff_names_every_difference(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(root, "aaaa1111")
    put(
        root,
        "bbbb2222",
        times=[1.0, 3.0],
        options={"cpu_timing": {"seed": 1}},
        sources={"tiled_attention/x.py": "bbbbbbbbbbbb", "tiled_attention/y.py": "cc"},
    )
    assert run("diff", "aaaa1111", "bbbb2222") == 0
    said = capsys.readouterr().out
    assert "options.cpu_timing.seed: 0 -> 1" in said
    assert "sources.tiled_attention/x.py: aaaaaaaaaa -> bbbbbbbbbb" in said
    assert "sources.tiled_attention/y.py: not there -> cc" in said
    assert "these do not" in said


def test_rows_stand_side_by_side() -> None:
    one = pd.DataFrame({"implementation": ["naive", "tiled"], "length": 512, "ms": [2.0, 4.0]})
    other = pd.DataFrame({"implementation": ["tiled", "sdpa"], "length": 512, "ms": [6.0, 1.0]})
    joined = results.side_by_side(one, other).set_index("implementation")
    assert joined.loc["tiled", "ms B/A"] == 1.5
    assert joined["ms A"].isna().to_dict() == {"naive": False, "sdpa": True, "tiled": False}
    assert joined["ms B"].isna().to_dict() == {"naive": True, "sdpa": False, "tiled": False}


def test_results_of_two_steps_are_not_compared(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(root, "aaaa1111")
    put(root, "bbbb2222", step="crossover")
    assert run("diff", "aaaa1111", "bbbb2222") == 2
    assert "aaaa1111 is of cpu_timing, bbbb2222 of crossover" in capsys.readouterr().err


def test_prune_deletes_only_with_yes_and_never_what_is_current(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    current = put(root, make_plan([]).results["cpu_timing"][0].version).folder
    older = put(root, "aaaa1111").folder
    recorded = write(root / "named" / "cpu_timing" / "aaaa1111", {}, RECORD).folder
    half, working = (root / "local" / "cpu_timing" / name for name in (".half", ".working"))
    half.mkdir()
    working.mkdir()
    os.utime(half, (time.time() - 7200,) * 2)
    assert run("prune") == 0
    assert "2 folders" in capsys.readouterr().out
    assert older.exists()
    assert run("prune", "--yes") == 0
    kept = {path for path in (current, older, recorded, half, working) if path.exists()}
    assert kept == {current, recorded, working}
