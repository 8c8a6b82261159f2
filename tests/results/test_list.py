"""`list` tells what there is and what is current, and goes on where a result is damaged."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def test_nothing_to_list(put, run) -> None:
    assert run("list") == "no results\n"
    put("aaaa1111")
    narrowed = run("list", "--step", "crossover", "--platform", "local")
    assert narrowed == "no results of local crossover\n"
    assert run("list", "--platform", "*") == "no results of *\n"


def test_sorted_and_current_or_older(put, run, current: str) -> None:
    put("bbbb2222", platform="named", subject="tiled", step="correctness")
    put("aaaa1111", ended="2026-01-03T00:00:00+00:00")
    put(current, ended="2026-01-02T00:00:00+00:00", git={"commit": None, "clean": None})
    assert [" ".join(line.split()) for line in run("list").splitlines()] == [
        "platform step subject version when (UTC) cpu commit state",
        f"local cpu_timing - {current} 2026-01-02 00:00:00 a CPU unknown current",
        "local cpu_timing - aaaa1111 2026-01-03 00:00:00 a CPU 0123456789+ older",
        "named correctness tiled bbbb2222 2026-01-01 00:00:01 a CPU 0123456789+ older",
    ]


def test_platform_step_and_overrides_narrow_it(put, run, current: str) -> None:
    put("bbbb2222", platform="named", step="correctness", git={"commit": "f" * 40, "clean": True})
    put("cccc3333", platform="named")
    put(current)
    _, row = run("list", "--platform", "named", "--step", "correctness").splitlines()
    assert row.split()[3] == "bbbb2222"
    assert row.split()[-2:] == ["f" * 10, "older"]
    assert "current" in run("list")
    assert "current" not in run("list", "experiment=smoke")


def edit(folder: Path, **changed: object) -> None:
    path = folder / "provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def replace_provenance(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "provenance.json").write_text(text)


GARBLED = ["", "{", "[]", "{}", "3", "null", '"text"', '{"files": 3}', "\x00"]
DAMAGES: dict[str, Callable[[Path], object]] = {
    "another checksum": lambda folder: (folder / "result.csv").write_text("a\n1\n"),
    "cut off": lambda folder: os.truncate(folder / "result.csv", 30),
    "no table": lambda folder: (folder / "result.csv").unlink(),
    "no provenance": lambda folder: (folder / "provenance.json").unlink(),
    "bytes": lambda folder: (folder / "provenance.json").write_bytes(b"\xff"),
    "that of another result": lambda folder: edit(folder, version="bbbb2222"),
    "no machine": lambda folder: edit(folder, machine=None),
    "no checksums": lambda folder: edit(folder, files=["result.csv"]),
} | {f"provenance is {text!r}": replace_provenance(text) for text in GARBLED}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_is_named_in_one_line(put, run, damage: Callable[[Path], object]) -> None:
    put("cccc3333")
    damage(put("aaaa1111").folder)
    for command in (["show", "aaaa1111"], ["diff", "aaaa1111", "cccc3333"]):
        assert "aaaa1111" in run(*command, code=2)
    _, *rows, fault = run("list").splitlines()
    states = {row.split()[3]: row.split()[-1] for row in rows}
    assert states == {"aaaa1111": "damaged", "cccc3333": "older"}
    assert fault.startswith("damaged: ")
    assert "aaaa1111" in fault


def test_a_folder_that_a_job_is_about_to_fill_is_no_result(root: Path, run) -> None:
    (root / "local" / "cpu_timing" / "aaaa1111").mkdir(parents=True)
    (root / "local" / "cpu_timing" / ".half").mkdir(parents=True)
    (root / "local" / "cpu_timing" / ".half" / "result.csv").write_text("")
    assert run("list") == "no results\n"
