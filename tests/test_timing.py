"""Interleaved timing, on a clock that the tests wind; and the lock, with real processes."""

import gc
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tqdm import tqdm

from tiled_attention import timing
from tiled_attention.timing import TooSlowError, exclusive, interleaved, no_garbage_collection

Costs = dict[str, float]


class Clock:
    """Time passes only where a function spends it, and faster by `slowdown` for each second."""

    def __init__(self, slowdown: float = 0.0) -> None:
        self.now = 0.0
        self.slowdown = slowdown
        self.calls: list[tuple[str, Any]] = []

    def perf_counter(self) -> float:
        return self.now

    def spending(self, name: str, seconds: float) -> Callable[[Any], None]:
        def function(argument: Any) -> None:
            self.calls.append((name, argument))
            self.now += seconds * (1 + self.slowdown * self.now)

        return function


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return wound(monkeypatch)


def wound(monkeypatch: pytest.MonkeyPatch, slowdown: float = 0.0) -> Clock:
    clock = Clock(slowdown)
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=clock.perf_counter))
    return clock


def run(
    clock: Clock, costs: Costs, min_rounds: int = 4, max_rounds: int = 4, seconds: float = 1.0
) -> list[dict[str, Any]]:
    functions = {name: clock.spending(name, cost) for name, cost in costs.items()}
    return interleaved(
        functions,
        lambda number: (f"inputs {number}",),
        min_rounds=min_rounds,
        max_rounds=max_rounds,
        seconds=seconds,
        progress=tqdm(disable=True),
    )


def test_order_alternates(clock: Clock) -> None:
    samples = run(clock, {"a": 0.1, "b": 0.2, "c": 0.3})
    order = ["".join(s["name"] for s in samples if s["round"] == number) for number in range(4)]
    assert order == ["abc", "cba", "abc", "cba"]
    assert [s["position"] for s in samples] == [0, 1, 2] * 4


def test_all_functions_of_a_round_get_the_same_fresh_inputs(clock: Clock) -> None:
    run(clock, {"a": 0.1, "b": 0.2})
    warm_up, timed = clock.calls[:2], clock.calls[2:]
    assert warm_up == [("a", "inputs 0"), ("b", "inputs 0")]
    inputs = [argument for _, argument in timed]
    assert inputs == [f"inputs {number}" for number in range(4) for _ in range(2)]


def test_times_are_those_of_the_calls_alone(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = run(clock, {"a": 0.125, "b": 0.25})
    assert [s["ms"] for s in samples if s["name"] == "a"] == pytest.approx([125] * 4)
    assert [s["ms"] for s in samples if s["name"] == "b"] == pytest.approx([250] * 4)
    starts = [s["elapsed_s"] for s in samples]
    assert starts == pytest.approx([0, 0.125, 0.375, 0.625, 0.75, 0.875, 1.125, 1.375])


@pytest.mark.parametrize(("max_seconds", "called"), [(1.9, "a"), (3.9, "ab")])
def test_rounds_that_would_take_too_long_are_not_begun(
    clock: Clock, max_seconds: float, called: str
) -> None:
    functions = {name: clock.spending(name, 0.5) for name in "ab"}
    limits = {"min_rounds": 4, "max_rounds": 9, "seconds": 1, "max_seconds": max_seconds}
    with pytest.raises(TooSlowError, match="4 rounds take over"):
        interleaved(functions, lambda number: ("inputs",), progress=tqdm(disable=True), **limits)
    assert "".join(name for name, *_ in clock.calls) == called


def test_making_inputs_is_not_timed(clock: Clock) -> None:
    def slow_inputs(number: int) -> tuple[str]:
        clock.now += 100
        return ("inputs",)

    samples = interleaved(
        {"a": clock.spending("a", 0.125)},
        slow_inputs,
        min_rounds=2,
        max_rounds=2,
        seconds=1,
        progress=tqdm(disable=True),
    )
    assert [s["ms"] for s in samples] == [125, 125]


@pytest.mark.parametrize(
    ("min_rounds", "max_rounds", "seconds", "rounds"),
    [
        (3, 10, 1e-6, 3),  # no time: the least
        (3, 10, 1e6, 10),  # all the time: the most
        (3, 10, 5.0, 5),  # a second each: as many as there is time for
        (1, 10, 4.5, 5),  # the round under way is finished
        (1, 1, 1e6, 1),
    ],
)
def test_number_of_rounds(
    clock: Clock, min_rounds: int, max_rounds: int, seconds: float, rounds: int
) -> None:
    samples = run(clock, {"a": 0.25, "b": 0.75}, min_rounds, max_rounds, seconds)
    assert len(samples) == 2 * rounds
    assert max(s["round"] for s in samples) == rounds - 1


def test_progress_foresees_the_rounds(clock: Clock) -> None:
    progress = tqdm(total=3, disable=False, file=io.StringIO())
    interleaved(
        {"a": clock.spending("a", 1.0)},
        lambda number: (number,),
        min_rounds=3,
        max_rounds=60,
        seconds=10,
        progress=progress,
    )
    assert progress.total == progress.n == 10


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_drift_does_not_look_like_a_difference(
    monkeypatch: pytest.MonkeyPatch, names: str
) -> None:
    costs = {"a": 0.010, "b": 0.012}
    clock = wound(monkeypatch, slowdown=1.0)  # half as fast after a second
    samples = run(clock, {name: costs[name] for name in names}, min_rounds=40, max_rounds=40)
    times = pd.DataFrame(samples).pivot(index="round", columns="name", values="ms")
    assert times["a"].max() > 1.5 * times["a"].min()
    assert np.median(times["b"] / times["a"]) == pytest.approx(1.2, rel=0.01)


@pytest.fixture
def collecting() -> Iterator[None]:
    """Leave the garbage collector on, whatever a failing test did."""
    assert gc.isenabled()
    yield
    gc.enable()


@pytest.mark.usefixtures("collecting")
def test_garbage_is_not_collected_while_timing(clock: Clock) -> None:
    def function(number: int) -> None:
        seen.append(gc.isenabled())
        clock.now += 1

    seen: list[bool] = []
    interleaved(
        {"a": function},
        lambda number: (number,),
        min_rounds=2,
        max_rounds=2,
        seconds=0,
        progress=tqdm(disable=True),
    )
    assert seen == [True, False, False]  # the warm-up comes first
    assert gc.isenabled()


@pytest.mark.usefixtures("collecting")
def test_garbage_is_collected_again_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), no_garbage_collection():
        _ = 1 / (not gc.isenabled() and 0)
    assert gc.isenabled()


SECOND_PROCESS = """
import sys
from pathlib import Path
from tiled_attention.timing import exclusive
with exclusive(sys.argv[1]):
    Path(sys.argv[2]).touch()
    sys.stdin.read()
"""


@pytest.fixture
def lock_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for locks of our own, so that no real timing is waited for."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def second_process(device: str, entered: Path, stdin: int) -> subprocess.Popen[str]:
    """Start a process that takes the lock, touches `entered` and ends with its input."""
    source = str(Path(timing.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", SECOND_PROCESS, device, str(entered)],
        env=os.environ | {"TMPDIR": str(entered.parent), "PYTHONPATH": source},
        stdin=stdin,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_second_process_waits_for_the_device(lock_folder: Path) -> None:
    entered = lock_folder / "entered"
    with exclusive("cpu"):
        waiting = second_process("cpu", entered, subprocess.DEVNULL)
        assert waiting.stdout is not None
        assert waiting.stdout.readline().startswith("waiting")
        time.sleep(0.3)
        assert waiting.poll() is None
        assert not entered.exists()
    with waiting:
        assert waiting.wait(timeout=30) == 0
    assert entered.exists()


def test_another_device_is_not_waited_for(lock_folder: Path) -> None:
    entered = lock_folder / "entered"
    with exclusive("cpu"):
        output, _ = second_process("cuda-0", entered, subprocess.DEVNULL).communicate(timeout=30)
        assert entered.exists()
        assert output == ""


def test_killed_process_and_error_leave_no_lock(lock_folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), exclusive("cpu"):
        _ = 1 / 0
    entered, entered_next = lock_folder / "entered", lock_folder / "entered next"
    with second_process("cpu", entered, subprocess.PIPE) as holder:
        while not entered.exists():
            assert holder.poll() is None
            time.sleep(0.02)
        holder.kill()
    output, _ = second_process("cpu", entered_next, subprocess.DEVNULL).communicate(timeout=30)
    assert entered_next.exists()
    assert output == ""
