"""Real Snakemake runs on copies of the repository."""

import shutil
from pathlib import Path

import pytest

from workflow.checkout import SMOKE, Checkout, copy_repository


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A copy in which the smoke experiment has run once; do not change it."""
    checkout = copy_repository(tmp_path_factory.mktemp("finished"))
    done = checkout.snakemake(*SMOKE)
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout


@pytest.fixture
def checkout(finished: Checkout, tmp_path: Path) -> Checkout:
    """A private copy of the finished run, results and records included."""
    target = tmp_path / "checkout"
    shutil.copytree(finished.path, target, symlinks=True)
    return Checkout(target)


@pytest.fixture
def fresh(tmp_path: Path) -> Checkout:
    """A copy in which nothing has run."""
    target = tmp_path / "fresh"
    target.mkdir()
    return copy_repository(target)
