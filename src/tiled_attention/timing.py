"""Interleaved wall-clock timing of several functions on the same fresh inputs."""

import gc
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from tqdm import tqdm


class TooSlowError(Exception):
    """So many rounds would take longer than they may."""


Timed = Callable[..., Any]
Clock = Callable[[Timed, tuple[Any, ...]], float]


@contextmanager
def exclusive(device: str) -> Iterator[None]:
    """Hold the machine-wide lock of a device, waiting until no other timing has it."""
    path = Path(tempfile.gettempdir()) / f"tiled-attention-{device}.lock"
    lock = FileLock(path, mode=0o666)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print(f"waiting: another timing on this machine has {path.name}", flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def wall_clock(function: Timed, inputs: tuple[Any, ...]) -> float:
    """Return the milliseconds that function(*inputs) took on the CPU."""
    start = time.perf_counter()
    output = function(*inputs)
    end = time.perf_counter()
    del output  # its memory is free again before the next one starts
    return (end - start) * 1e3


def interleaved(
    functions: Mapping[str, Timed],
    fresh_inputs: Callable[[int], tuple[Any, ...]],
    *,
    clock: Clock = wall_clock,
    after_round: Callable[[int], None] = lambda number: None,
    min_rounds: int,
    max_rounds: int,
    seconds: float,
    max_seconds: float = math.inf,
    progress: tqdm,
) -> list[dict[str, Any]]:
    """Time every function once a round, in rounds A B C, C B A, A B C, ...

    `fresh_inputs(round)` gives the arguments, the same for all functions of a round. At least
    min_rounds and at most max_rounds are run; in between, until `seconds` have gone. One
    untimed call of each comes first, from which the time of the rounds is foreseen. `clock`
    times one call; `after_round` is told each round.

    Returns one row a sample: name, round, position in the round, elapsed_s since the first
    round began, ms.

    Raises:
        TooSlowError: min_rounds would take longer than max_seconds.
    """
    samples: list[dict[str, Any]] = []
    inputs = fresh_inputs(0)
    begun = time.perf_counter()
    for function in functions.values():
        function(*inputs)
        foreseen = min_rounds * (time.perf_counter() - begun)
        if foreseen > max_seconds:
            raise TooSlowError(f"{min_rounds} rounds take over {foreseen:.0f} s")
    with no_garbage_collection():
        begun = time.perf_counter()
        for number in range(max_rounds):
            elapsed = time.perf_counter() - begun
            if number >= min_rounds and elapsed >= seconds:
                break
            if number == 1:
                expected = min(max_rounds, max(min_rounds, round(seconds / elapsed)))
                progress.total = (progress.total or 0) + expected - min_rounds
            inputs = fresh_inputs(number)
            names = list(functions) if number % 2 == 0 else list(functions)[::-1]
            for position, name in enumerate(names):
                start = time.perf_counter()
                samples.append(
                    {
                        "name": name,
                        "round": number,
                        "position": position,
                        "elapsed_s": start - begun,
                        "ms": clock(functions[name], inputs),
                    }
                )
            after_round(number)
            progress.update()
    return samples


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect now, and not again until the end."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
