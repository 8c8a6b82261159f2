"""A copy of the repository to run in; nothing is written into the checkout itself."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SMOKE = ["--config", "experiment=smoke"]


@dataclass(frozen=True)
class Checkout:
    """A copy of the repository, committed to git, with runs of its own."""

    path: Path

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--cores", "4", *arguments]

    def snakemake(
        self, *arguments: str, cwd: Path | None = None, timeout: float = 600
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=cwd or self.path,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment(),
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )

    def planned(self, *arguments: str) -> dict[str, int]:
        """Return {rule: number of jobs} that a dry run would do; empty for nothing."""
        done = self.snakemake("-n", *arguments)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.partition("Job stats:")[2].splitlines()
        cells = [line.split() for line in lines]
        jobs = {
            row[0]: int(row[1])
            for row in cells
            if len(row) == 2 and row[0].isidentifier() and row[1].isdigit()
        }
        return {rule: count for rule, count in jobs.items() if rule not in ("all", "total")}

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        return subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def edit(self, file: str, before: str, after: str) -> None:
        path = self.path / file
        text = path.read_text()
        assert text.count(before) >= 1, f"{before!r} is not in {file}"
        path.write_text(text.replace(before, after, 1))

    def tables(self, step: str) -> list[Path]:
        return sorted(self.path.glob(f"results/local/{step}/*/result.csv"))


def environment() -> dict[str, str]:
    """Return the environment without the checkout's own package on the path."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return kept | {"OMP_NUM_THREADS": "1"}  # must not reach the timing


def copy_repository(target: Path) -> Checkout:
    """Copy the tracked files as they are in the working tree, and commit them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source = REPOSITORY / name
        if source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)
    checkout = Checkout(target)
    checkout.git("init", "--quiet")
    checkout.git("add", "--all")
    checkout.git("commit", "--quiet", "--message", "copy")
    return checkout
