"""Which results an experiment needs, and the version of each: the path is the version.

A version is a hash of what a step's numbers depend on: the source files that the step and its
implementations import, its resolved options, and the versions of the results it reads. Never
the time, the machine, the git commit or a library's version: those are in provenance.json.
"""

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tiled_attention.compose import composed
from tiled_attention.config import Config
from tiled_attention.sources import PACKAGE, ROOT, closure
from tiled_attention.store import Stored, exists, stored_results

RESULTS = ROOT / "results"
REPORTS = ROOT / "reports"
VERSION_LENGTH = 12


@dataclass(frozen=True)
class Step:
    """What a step's numbers depend on, besides its own source."""

    name: str
    options: tuple[str, ...] = ()  # sections of the configuration
    implementations: str = "none"  # none, each (one result for each), or all (in one result)
    reads: tuple[str, ...] = ()  # steps whose results it reads

    @property
    def module(self) -> str:
        """The module that holds the step."""
        return f"{PACKAGE}.steps.{self.name}"


STEPS = {
    step.name: step
    for step in (
        Step("correctness", options=("correctness",), implementations="each"),
        Step("gate_sensitivity", options=("gate_sensitivity",)),
        Step("byte_arithmetic", options=("byte_arithmetic", "devices")),
        Step("peak_memory", options=("peak_memory",), implementations="each"),
        Step(
            "cpu_timing",
            options=("cpu_timing",),
            implementations="all",
            reads=("correctness",),
        ),
        Step("crossover", options=("crossover",), reads=("cpu_timing",)),
        Step("verdict", reads=("correctness", "gate_sensitivity")),
    )
}
MEASURED = (
    "correctness",
    "gate_sensitivity",
    "byte_arithmetic",
    "peak_memory",
    "cpu_timing",
    "crossover",
)
RENDERED = {
    "figures": Step("figures", reads=MEASURED),
    "report": Step("report", reads=(*MEASURED, "figures")),
}
FIGURES = (
    "time_by_length",
    "ratio_by_length",
    "crossover",
    "block_cost",
    "bytes_by_length",
    "peak_memory",
    "errors",
)
BESIDE = ("cpu_timing", "crossover")  # steps that a report shows of other platforms too
LOCAL = "local"  # the platform that is never committed, and so never shown beside another


@dataclass(frozen=True)
class Planned:
    """One result that the experiment needs."""

    step: str
    version: str
    subject: str | None  # the implementation, for steps that take one at a time
    sources: dict[str, str]  # path under src/: SHA-256
    options: dict[str, Any]
    reads: tuple["Planned", ...]

    def folder(self, platform: str) -> Path:
        """Return the folder of this result."""
        return RESULTS / platform / self.step / self.version


@dataclass(frozen=True)
class Recorded:
    """A result of another platform, and whether it is of the version planned here."""

    stored: Stored
    current: bool


@dataclass(frozen=True)
class Plan:
    """Every result of one experiment, and where its report goes."""

    config: Config
    overrides: tuple[str, ...] = ()  # that made the configuration

    def command(self, step: str | None) -> str:
        """Return the command that makes a step's results anew, or everything for None."""
        if step is not None:
            return shlex.join(["python", "-m", f"{PACKAGE}.steps.{step}", *self.overrides])
        if not self.overrides:
            return "snakemake --cores 4"
        values = json.dumps(list(self.overrides))
        return f"snakemake --cores 4 --config {shlex.quote('overrides=' + values)}"

    @property
    def platform(self) -> str:
        """The platform whose results are planned."""
        return self.config.platform

    @cached_property
    def results(self) -> dict[str, tuple[Planned, ...]]:
        """The planned results by step, in the order of the story."""
        planned: dict[str, tuple[Planned, ...]] = {}
        for step in STEPS.values():
            planned[step.name] = tuple(self._plan(step, planned))
        return planned

    @cached_property
    def rendered(self) -> dict[str, Planned]:
        """The planned figures and report."""
        planned = dict(self.results)
        beside = [f"{it.stored.platform}: {it.stored.identity}" for it in self.recorded]
        for step in RENDERED.values():
            planned[step.name] = tuple(self._plan(step, planned, beside))
        return {name: planned[name][0] for name in RENDERED}

    @cached_property
    def recorded(self) -> tuple["Recorded", ...]:
        """What other platforms have of the steps that a report shows beside its own."""
        found = []
        platforms = sorted(path.name for path in RESULTS.glob("*") if path.is_dir())
        for platform in platforms:
            if platform not in (self.platform, LOCAL):
                found += [self._recorded(platform, step) for step in BESIDE]
        return tuple(it for it in found if it is not None)

    def _recorded(self, platform: str, step: str) -> "Recorded | None":
        (planned,) = self.results[step]
        if exists(planned.folder(platform)):
            return Recorded(Stored(planned.folder(platform)), current=True)
        older = [it for it in stored_results(RESULTS, platform) if it.step == step]
        if not older:
            return None
        return Recorded(max(older, key=lambda it: it.provenance["ended"]), current=False)

    def all_results(self) -> Iterator[Planned]:
        """Yield every planned result."""
        for results in self.results.values():
            yield from results

    def find(self, step: str, version: str) -> Planned:
        """Return the planned result of that version; KeyError if there is none."""
        return next(result for result in self.results[step] if result.version == version)

    def folder(self, step: str) -> Path:
        """Return the folder of a step that has one result."""
        (result,) = self.results[step]
        return result.folder(self.platform)

    def report_folder(self) -> Path:
        """Return the folder of the report and its figures."""
        return REPORTS / self.platform

    def stamp(self, step: str) -> Path:
        """Return the file that says which version of the figures or the report is rendered."""
        return self.report_folder() / "rendered" / f"{step}-{self.rendered[step].version}.json"

    def figure_files(self) -> list[Path]:
        """Return the files that the figures step draws."""
        folder = self.report_folder() / "figures"
        return [folder / f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")]

    def report_files(self) -> list[Path]:
        """Return the files that the report step writes."""
        return [self.report_folder() / name for name in ("report.md", "report.html")]

    def _plan(
        self, step: Step, planned: dict[str, tuple[Planned, ...]], extra: Sequence[str] = ()
    ) -> Iterator[Planned]:
        implementations = self.config.implementations
        subjects: list[str | None] = [None]
        if step.implementations == "each":
            subjects = list(implementations)
        values = asdict(self.config)
        for subject in subjects:
            used = [subject] if subject else list(implementations)
            if step.implementations == "none":
                used = []
            options = {name: values[name] for name in step.options}
            if used:
                options["implementations"] = {name: implementations[name] for name in used}
            targets = [implementations[name]["_target_"].rpartition(".")[0] for name in used]
            sources = closure([step.module, *targets])
            reads = tuple(result for name in step.reads for result in planned[name])
            identity = {
                "step": step.name,
                "sources": sources,
                "options": options,
                "reads": [[result.step, result.version] for result in reads],
                "recorded": list(extra),
            }
            text = json.dumps(identity, sort_keys=True)
            version = hashlib.sha256(text.encode()).hexdigest()[:VERSION_LENGTH]
            yield Planned(step.name, version, subject, sources, options, reads)


def make_plan(overrides: Sequence[str]) -> Plan:
    """Compose the configuration and plan its results.

    Raises:
        ConfigError: the configuration is not accepted.
        SourceError: a source file cannot be found or parsed.
    """
    return Plan(composed(overrides), tuple(overrides))
