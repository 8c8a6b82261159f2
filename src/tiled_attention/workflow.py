"""What the Snakefile asks: paths, logs, subjects and overrides of one experiment.

Imports neither torch nor pandas, so that a run with nothing to do is over at once.
"""

import fcntl
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from snakemake.io import ancient, report

from tiled_attention.compose import ConfigError
from tiled_attention.pipeline import MEASURED, RENDERED, STEPS
from tiled_attention.plan import Plan, Planned, make_plan
from tiled_attention.sources import ROOT, SRC, SourceError
from tiled_attention.store import PROVENANCE, StoreError, exists

STEPS_PACKAGE = "tiled_attention.steps"
KEYS = ("platform", "platforms", "experiment", "overrides")
NAME = "[A-Za-z0-9][A-Za-z0-9_./-]*"


class Experiment:
    """One experiment as Snakemake sees it; paths are relative to the repository's root."""

    def __init__(self, config: Mapping[str, Any], cores: int | None) -> None:
        """Check `--config` and the whole Hydra configuration, and plan every result."""
        try:
            arguments = hydra_overrides(config)
            self.plan: Plan = make_plan(arguments)
            self.rendered = self.plan.rendered
        except (ConfigError, SourceError, StoreError) as error:
            _stop(error)
        threads = self.plan.config.cpu_timing.threads
        if threads and cores and threads > cores:
            _stop(f"cpu_timing.threads = {threads}, but --cores is {cores}: give it {threads}")

    def result(self, step: str) -> list[str]:
        """Return the files that say a result is there; {version} stands for each one's.

        Both, so that Snakemake removes both before it makes a result anew.
        """
        return [f"{self._folder(step)}/{name}" for name in ("result.csv", "provenance.json")]

    @property
    def results(self) -> list[str]:
        """Every result that was measured, so that one that got lost is made again."""
        measured = [it for it in self.plan.all_results() if it.step in MEASURED]
        return [_relative(it.folder / "result.csv") for it in measured]

    def log(self, step: str) -> str:
        """Return the path of the step's log."""
        return f"logs/{self._folder(step).removeprefix('results/')}.log"

    def command(self, wildcards: Any, output: Any) -> str:
        """Return a job's command: the step's program and its Hydra overrides, quoted.

        It takes `output` so that Snakemake counts it as derived from there, and does not run a
        job again because an override of another step has changed.
        """
        step, given = _step_of(output), dict(wildcards.items())
        own = []
        if "version" in given:
            own.append(f"subject={self.plan.find(step, given['version']).subject}")
        if "platform" in given and self.plan.config.platforms:
            own.append(f'platforms=["{given["platform"]}"]')
        return shlex.join(["python", "-m", f"{STEPS_PACKAGE}.{step}", *self.plan.overrides, *own])

    def read_by(self, step: str) -> list[str] | Callable[[Any], list[str]]:
        """Return the results that a step reads, for a step of a GPU by its job's platform.

        A result that is there is `ancient`: its version is in its path, so its time says nothing.
        """
        results = (self.rendered[step],) if step in RENDERED else self.plan.results[step]
        by_platform = {
            it.platform: [path for read in it.reads for path in self._input(read)]
            for it in results
        }
        if (STEPS | RENDERED)[step].device == "cuda":
            return lambda wildcards: by_platform[wildcards.platform]
        return by_platform[self.plan.platform]

    @property
    def about_gpus(self) -> str:
        """What to tell at the start: where the GPU's steps run, or that there is none."""
        if self.plan.gpu_platforms:
            how = f" ({self.plan.config.gpu})" if self.plan.config.gpu else ""
            return f"GPU steps for: {', '.join(self.plan.gpu_platforms)}{how}"
        recorded = [it for it in self.plan.recorded if STEPS[it.stored.step].device == "cuda"]
        lines = ["no GPU here: its steps are left out, and recorded results are shown"]
        for it in recorded:
            age = (
                ""
                if it.current
                else (
                    " (older than the source; on that machine "
                    f"`snakemake --cores 4 --config platform={it.stored.platform}` refreshes it)"
                )
            )
            lines.append(f"recorded: {it.stored.platform} {it.stored.version}{age}")
        return "\n".join(lines)

    def _input(self, read: Planned) -> list[str]:
        if read.step == "figures":
            return [ancient(str(path)) for path in self.figures]
        path = _relative(read.folder / "result.csv")
        return [ancient(path) if exists(read.folder) else path]

    @property
    def gpu_resources(self) -> dict[str, Any]:
        """What a job on a GPU asks the executor for, beside one GPU: by its platform."""
        machines = self.plan.config.machines
        keys = sorted({key for machine in machines.values() for key in machine.resources})

        def of_platform(key: str) -> Callable[[Any], str | int]:
            return lambda wildcards: (
                machines[wildcards.platform].resources.get(key, "")
                if wildcards.platform in machines
                else ""
            )

        return {key: of_platform(key) for key in keys}

    @property
    def figures(self) -> list[str]:
        """The figures, and the stamp that names their version."""
        drawn = [report(_relative(path), category="Figures") for path in self.plan.figure_files()]
        return [*drawn, _relative(self.plan.stamp("figures"))]

    @property
    def report(self) -> list[str]:
        """The report, and the stamp that names its version."""
        written = [report(_relative(path), category="Report") for path in self.plan.report_files()]
        return [*written, _relative(self.plan.stamp("report"))]

    def _folder(self, step: str) -> str:
        if step in RENDERED:
            return f"results/{self.plan.platform}/{step}/{self.rendered[step].version}"
        results = self.plan.results[step]
        one = results and STEPS[step].implementations != "each"
        version = results[0].version if one else "{version}"
        platform = "{platform}" if STEPS[step].device == "cuda" else self.plan.platform
        return f"results/{platform}/{step}/{version}"


def hydra_overrides(config: Mapping[str, Any]) -> list[str]:
    """Turn Snakemake's --config into Hydra overrides.

    Raises:
        ConfigError: an unknown key, or a value that is no text (Snakemake reads 00123, 1_0 and
            123e456 as numbers, which would not be kept byte for byte).
    """
    unknown = sorted(set(config) - set(KEYS))
    if unknown:
        raise ConfigError(f"--config {unknown[0]}: no such key; accepted: {', '.join(KEYS)}")
    overrides = config.get("overrides", [])
    overrides = [overrides] if isinstance(overrides, str) else overrides
    if not isinstance(overrides, list) or not all(isinstance(each, str) for each in overrides):
        raise ConfigError("--config overrides: a list of texts is accepted, '[\"a.b=c\", ...]'")
    named = []
    for key in ("experiment", "platform"):
        value = config.get(key)
        if value is None:
            continue
        if not isinstance(value, str):
            raise ConfigError(f"--config {key}: read as {value!r}; quote it: {key}='\"...\"'")
        if not re.fullmatch(NAME, value):
            raise ConfigError(f"--config {key} = {value!r}: accepted: {NAME}")
        named.append(f'{key}="{value}"')  # quoted, so that Hydra keeps it text
    platforms = config.get("platforms", [])
    if isinstance(platforms, str):
        platforms = platforms.split(",")
    if not isinstance(platforms, list) or not all(
        isinstance(each, str) and re.fullmatch(NAME, each) for each in platforms
    ):
        raise ConfigError("--config platforms: a list of names is accepted, '[a100,h200]'")
    if platforms:
        named.append(f"platforms={json.dumps(platforms, separators=(',', ':'))}")
    return [*named, *overrides]


def job_environment() -> dict[str, str]:
    """Return the variables that make jobs run this checkout's code with this Python."""
    python_path = [str(SRC), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(python_path)),
    }


def clear_traces_of_killed_runs() -> None:
    """Remove the locks and marks that a killed Snakemake left in this checkout.

    A live run holds a lock of its own that ends with its process, so whatever is found while
    nobody holds it is a dead run's. Results are written whole or not at all, so marks of
    unfinished files say nothing here.
    """
    folder = ROOT / ".snakemake"
    try:
        folder.mkdir(exist_ok=True)
        handle = os.open(folder / "alive", os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # kept open until the process ends
    except OSError:
        return
    for name in ("locks", "incomplete"):
        for left in (folder / name).glob("*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)


def _step_of(output: Sequence[str]) -> str:
    """Return the step whose results, or whose stamp, a rule's output ends with."""
    path = Path(output[-1])
    return path.parts[2] if path.name == PROVENANCE else path.stem.partition("-")[0]


def _relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _stop(error: Exception | str) -> NoReturn:
    """End Snakemake with one line."""
    sys.exit(f"error: {error}")
