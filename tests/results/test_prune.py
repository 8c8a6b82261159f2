"""`prune` deletes what is not current, on one platform, and nothing else."""

import os
import shutil
import time
from pathlib import Path

import pytest

from tiled_attention.plan import make_plan
from tiled_attention.store import shown


def test_deletes_only_with_yes_and_never_what_is_current(
    root: Path, put, run, current: str
) -> None:
    step = root / "local" / "cpu_timing"
    kept = [
        put(current).folder,
        put("aaaa1111", platform="named").folder,
        step / ".working",
        step / "being-made",
    ]
    gone = [
        put("aaaa1111").folder,
        put("123e456", step="dropped_step").folder,
        step / ".half",
        step / "lost",
    ]
    for folder in (*kept[2:], *gone[2:]):
        folder.mkdir()
        (folder / "result.csv").write_text("x" * 1000)
    for folder in (kept[0], *gone[2:]):
        os.utime(folder, (time.time() - 3700,) * 2)
    size = sum(file.stat().st_size for folder in gone for file in folder.iterdir())
    *listed, total = run("prune").splitlines()
    assert sorted(line.partition("  ")[0] for line in listed) == sorted(map(shown, gone))
    assert total == f"4 folders, {size / 1e3:.1f} kB would be freed; --yes deletes"
    assert all(folder.exists() for folder in (*kept, *gone))
    assert run("prune", "--yes").splitlines()[-1] == f"4 folders, {size / 1e3:.1f} kB freed"
    assert {path for path in root.glob("*/*/*") if path.is_dir()} == set(kept)
    assert run("prune", "--yes") == "0 folders, 0.0 kB freed\n"


def test_a_current_result_is_kept_even_if_damaged(root: Path, put, run, current: str) -> None:
    folder = put(current).folder
    (folder / "provenance.json").unlink()
    os.utime(folder, (0, 0))
    assert run("prune", "--yes") == "0 folders, 0.0 kB freed\n"
    assert (folder / "result.csv").exists()


def test_a_damaged_older_result_goes(put, run) -> None:
    folder = put("aaaa1111").folder
    (folder / "provenance.json").write_text("{")
    assert run("prune", "--yes").splitlines()[-1].startswith("1 folders")
    assert not folder.exists()


def test_overrides_say_what_is_current(put, run) -> None:
    smoke = make_plan(["experiment=smoke"]).results["cpu_timing"][0].version
    folder = put(smoke).folder
    assert run("prune", "--yes", "experiment=smoke").startswith("0 folders")
    assert run("prune", "--yes").splitlines()[-1].startswith("1 folders")
    assert not folder.exists()


def test_nothing_outside_the_platform(root: Path, put, run) -> None:
    put("aaaa1111", platform="named")
    precious = [root.parent / "checkout" / ".git", root / ".hidden" / "step" / "version"]
    for folder in precious:
        folder.mkdir(parents=True)
        os.utime(folder, (0, 0))
    for platform in ("..", "../..", "*", "", ".", "/", "named/cpu_timing", ".hidden", "Named"):
        said = run("prune", "--yes", "--platform", platform, code=2)
        assert f"no platform {platform!r} has results; there are: named" in said
    assert run("prune", "--yes") == "0 folders, 0.0 kB freed\n"  # nothing of local's
    assert all(folder.exists() for folder in precious)
    assert (root / "named" / "cpu_timing" / "aaaa1111").exists()
    said = run("prune", "--yes", "--platform", "named")
    assert said.splitlines()[-1].startswith("1 folders")
    assert not (root / "named" / "cpu_timing" / "aaaa1111").exists()


def test_interrupted_it_leaves_no_half_result(put, run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put("aaaa1111").folder

    def interrupted(path: Path) -> None:
        (path / "result.csv").unlink()
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    assert "aaaa1111 (Permission denied)" in run("prune", "--yes", code=2)
    assert not folder.exists()
    assert run("list") == "no results\n"
