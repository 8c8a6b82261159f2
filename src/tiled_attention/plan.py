"""Which results an experiment needs, and the version of each: the path is the version.

A version is a hash of what a step's numbers depend on: the source files that the step and its
implementations import, its resolved options, and the versions of the results it reads. Never
the time, the machine, the git commit or a library's version: those are in provenance.json.
"""

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tiled_attention import gpu
from tiled_attention.compose import DEVICES, composed
from tiled_attention.config import Config
from tiled_attention.pipeline import BESIDE, FIGURES, RENDERED, STEPS, Step
from tiled_attention.sources import PACKAGE, ROOT, closure
from tiled_attention.store import Stored, exists, stored_results

RESULTS = ROOT / "results"
REPORTS = ROOT / "reports"
VERSION_LENGTH = 12
INTERPRETED = "interpreted"  # GPU code run by Triton's interpreter: judged, but never timed
LOCAL = "local"  # the platform that is never committed, and so never shown beside another


@dataclass(frozen=True)
class Planned:
    """One result that the experiment needs."""

    step: str
    version: str
    platform: str
    subject: str | None  # the implementation, for steps that take one at a time
    sources: dict[str, str]  # path under src/: SHA-256
    options: dict[str, Any]
    reads: tuple["Planned", ...]

    @property
    def folder(self) -> Path:
        """The folder of this result."""
        return RESULTS / self.platform / self.step / self.version


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
        named, others = {}, []
        for override in self.overrides:
            key, _, value = override.partition("=")
            if key in ("platform", "experiment"):
                named[key] = value.strip("\"'")
            else:
                others.append(override)
        config = [f"{key}={value}" for key, value in named.items()]
        config += [shlex.quote("overrides=" + json.dumps(others))] if others else []
        return " ".join(["snakemake --cores 4", *(["--config", *config] if config else [])])

    @property
    def platform(self) -> str:
        """The platform whose results are planned."""
        return self.config.platform

    @cached_property
    def results(self) -> dict[str, tuple[Planned, ...]]:
        """The planned results by step, in the order of the story; those of a step that needs a
        GPU on every one of `gpu_platforms`.
        """
        return self._planned_on(self.gpu_platforms)

    @cached_property
    def with_gpu(self) -> dict[str, tuple[Planned, ...]]:
        """What is planned on a platform that has a GPU of its own."""
        return self._planned_on((self.platform,))

    def _planned_on(self, gpu_platforms: Sequence[str]) -> dict[str, tuple[Planned, ...]]:
        planned: dict[str, tuple[Planned, ...]] = {}
        for step in STEPS.values():
            platforms = gpu_platforms if step.device == "cuda" else (self.platform,)
            planned[step.name] = tuple(
                it for platform in platforms for it in self._plan(step, planned, platform)
            )
        return planned

    @cached_property
    def gpu_platforms(self) -> tuple[str, ...]:
        """Where steps for a GPU are planned: on `platforms`, or here, or nowhere."""
        if self.config.platforms:
            return tuple(self.config.platforms)
        return (self.platform,) if self.uses_gpu else ()

    @cached_property
    def uses_gpu(self) -> bool:
        """Whether steps for a GPU are planned on the platform itself.

        As `gpu` says; where that is null, if there is a GPU, or if every result that it would
        give is recorded already.
        """
        if self.config.gpu is not None:
            return self.config.gpu != "none"
        return gpu.present() or all(
            exists(result.folder)
            for name, results in self.with_gpu.items()
            for result in results
            if STEPS[name].device == "cuda"
        )

    @cached_property
    def rendered(self) -> dict[str, Planned]:
        """The planned figures and report."""
        planned = dict(self.results)
        beside = [f"{it.stored.platform}: {it.stored.identity}" for it in self.recorded]
        for step in RENDERED.values():
            planned[step.name] = tuple(self._plan(step, planned, self.platform, beside))
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
        if STEPS[step].device == "cuda" and platform in self.gpu_platforms:
            return None  # planned in this run
        planned = replace(self.with_gpu[step][0], platform=platform)
        if exists(planned.folder):
            return Recorded(Stored(planned.folder), current=True)
        older = [
            it
            for it in stored_results(RESULTS, platform)
            if it.step == step and not it.provenance.get("options", {}).get(INTERPRETED)
        ]
        if not older:
            return None
        newest = max(older, key=lambda it: str(it.provenance.get("ended", "")))
        return Recorded(newest, current=False)

    def all_results(self) -> Iterator[Planned]:
        """Yield every planned result."""
        for results in self.results.values():
            yield from results

    def find(self, step: str, version: str) -> Planned:
        """Return the planned result of that version; KeyError if there is none."""
        return {result.version: result for result in self.results[step]}[version]

    def folder(self, step: str) -> Path:
        """Return the folder of a step that has one result."""
        (result,) = self.results[step]
        return result.folder

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
        self,
        step: Step,
        planned: dict[str, tuple[Planned, ...]],
        platform: str,
        extra: Sequence[str] = (),
    ) -> Iterator[Planned]:
        implementations = {
            name: {key: value for key, value in options.items() if key != "_devices_"}
            for name, options in self.config.implementations.items()
            if step.device in options.get("_devices_", DEVICES[:1])
        }
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
            if step.device == "cuda" and self.config.gpu == INTERPRETED:
                options[INTERPRETED] = True
            targets = [implementations[name]["_target_"].rpartition(".")[0] for name in used]
            sources = closure([step.module, *targets])
            reads = tuple(
                result
                for name in step.reads
                for result in planned[name]
                if step.device == "cpu" or result.platform == platform
            )
            identity = {
                "step": step.name,
                "sources": sources,
                "options": options,
                "reads": [
                    [it.step, it.version, *([it.platform] if it.platform != platform else [])]
                    for it in reads
                ],
                "recorded": list(extra),
            }
            text = json.dumps(identity, sort_keys=True)
            version = hashlib.sha256(text.encode()).hexdigest()[:VERSION_LENGTH]
            yield Planned(step.name, version, platform, subject, sources, options, reads)


def make_plan(overrides: Sequence[str]) -> Plan:
    """Compose the configuration and plan its results.

    Raises:
        ConfigError: the configuration is not accepted.
        SourceError: a source file cannot be found or parsed.
    """
    return Plan(composed(overrides), tuple(overrides))
