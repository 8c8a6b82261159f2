"""Interleaved wall-clock timing of several functions on the same fresh inputs."""

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from tqdm import tqdm

Timed = Callable[..., Any]


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


def interleaved(
    functions: Mapping[str, Timed],
    fresh_inputs: Callable[[int], tuple[Any, ...]],
    *,
    min_rounds: int,
    max_rounds: int,
    seconds: float,
    progress: tqdm,
) -> list[dict[str, Any]]:
    """Time every function once a round, in rounds A B C, C B A, A B C, ...

    `fresh_inputs(round)` gives the arguments, the same for all functions of a round. At least
    min_rounds and at most max_rounds are run; in between, until `seconds` have gone. One
    untimed call of each comes first.

    Returns one row a sample: name, round, position in the round, elapsed_s since the first
    round began, ms.
    """
    samples: list[dict[str, Any]] = []
    inputs = fresh_inputs(0)
    for function in functions.values():
        function(*inputs)
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
                output = functions[name](*inputs)
                end = time.perf_counter()
                del output  # its memory is free again before the next one starts
                samples.append(
                    {
                        "name": name,
                        "round": number,
                        "position": position,
                        "elapsed_s": start - begun,
                        "ms": (end - start) * 1e3,
                    }
                )
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
