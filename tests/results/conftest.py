"""Results to list, show, compare and prune, in a folder of their own."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tiled_attention import store
from tiled_attention.plan import make_plan
from tiled_attention.results import folders
from tiled_attention.results.__main__ import main
from tiled_attention.store import Stored, write

RECORD = {
    "platform": "local",
    "subject": None,
    "started": "2026-01-01T00:00:00+00:00",
    "ended": "2026-01-01T00:00:01+00:00",
    "machine": {"cpu": "a CPU", "cores": 2},
    "software": {"python": "3.12.1", "triton": None},
    "git": {"commit": "0123456789abcdef", "clean": False},
    "options": {"cpu_timing": {"seed": 0, "lengths": [512]}},
    "reads": ["correctness/1111aaaa"],
    "sources": {"tiled_attention/x.py": "aaaaaaaaaaaaaaaa"},
}
TIMES = {"implementation": ["naive", "tiled"], "length": 512, "median_ms": [1.0, 2.0]}

Put = Callable[..., Stored]
Run = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all results, instead of the checkout's own."""
    monkeypatch.setattr(store, "ROOT", tmp_path)
    monkeypatch.setattr(folders, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def put(root: Path) -> Put:
    """Write a result of that version; `changed` are entries of its provenance."""

    def put(
        version: str,
        step: str = "cpu_timing",
        platform: str = "local",
        tables: dict[str, object] | None = None,
        **changed: object,
    ) -> Stored:
        record = RECORD | {"step": step, "version": version, "platform": platform} | changed
        frames = {name: pd.DataFrame(it) for name, it in (tables or {"result": TIMES}).items()}
        return write(root / platform / step / version, frames, record)

    return put


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return what it printed, or for code 2 what it complained of in one line."""

    def run(*arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        said = capsys.readouterr()
        if code == 0:
            assert said.err == ""
            return said.out
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1
        return said.err

    return run


@pytest.fixture(scope="session")
def current() -> str:
    """The version of the timing that the present source plans."""
    return make_plan([]).results["cpu_timing"][0].version
