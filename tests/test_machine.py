"""Cores and memory, as limits leave them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tiled_attention import machine

GIB = 2**30


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with 16 GiB free, and a folder for its control group's files."""
    free = SimpleNamespace(available=16 * GIB)
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: free)
    monkeypatch.setattr(machine, "CGROUP_LIMIT", tmp_path / "memory.max")
    monkeypatch.setattr(machine, "CGROUP_USED", tmp_path / "memory.current")
    return tmp_path


def limit(folder: Path, most: str, used: str) -> None:
    (folder / "memory.max").write_text(most + "\n")
    (folder / "memory.current").write_text(used + "\n")


def test_free_memory_without_a_container(memory: Path) -> None:
    assert machine.available_bytes() == int(machine.SPARE * 16 * GIB)


def test_free_memory_in_a_container_without_a_limit(memory: Path) -> None:
    limit(memory, "max", str(GIB))
    assert machine.available_bytes() == int(machine.SPARE * 16 * GIB)


def test_container_limit_counts_what_is_used(memory: Path) -> None:
    limit(memory, str(4 * GIB), str(3 * GIB))
    assert machine.available_bytes() == int(machine.SPARE * GIB)


def test_container_limit_above_the_machine(memory: Path) -> None:
    limit(memory, str(64 * GIB), str(GIB))
    assert machine.available_bytes() == int(machine.SPARE * 16 * GIB)


def test_part_of_this_machine_is_available() -> None:
    total = machine.psutil.virtual_memory().total
    assert 0 < machine.available_bytes() < total


def test_usable_cores_follow_the_affinity() -> None:
    cores = os.sched_getaffinity(0)
    assert machine.usable_cores() == len(cores)
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert machine.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, cores)
