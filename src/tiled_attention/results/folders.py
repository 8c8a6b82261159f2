"""Finding results by version, and telling whole ones from damaged ones."""

import difflib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from tiled_attention.plan import LOCAL, RESULTS, make_plan
from tiled_attention.store import PROVENANCE, Stored, StoreError, shown

LEAST_PREFIX = 4
NEAREST = 3
STRICT = ConfigDict(strict=True)


@dataclass(config=STRICT, frozen=True)
class Git:
    """The commit that was checked out, and whether source and configuration were as in it."""

    commit: str | None
    clean: bool | None


@dataclass(config=STRICT, frozen=True)
class Record:
    """What provenance.json must say for a result to be listed, shown and compared."""

    step: str
    version: str
    platform: str
    subject: str | None
    started: str
    ended: str
    machine: dict[str, Any]
    software: dict[str, str | None]
    git: Git
    options: dict[str, Any]
    reads: list[str]
    sources: dict[str, str]
    files: dict[str, str]


def platforms() -> list[Path]:
    """Return the folder of every platform that has results."""
    return sorted(path for path in RESULTS.glob("[!.]*") if path.is_dir())


def platform_folder(name: str) -> Path:
    """Return the folder of a platform's results; that of LOCAL need not be there yet.

    Raises:
        StoreError: there is none of that name.
    """
    for folder in (RESULTS / LOCAL, *platforms()):
        if folder.name == name:
            return folder
    there = ", ".join(folder.name for folder in platforms()) or "none"
    raise StoreError(f"no platform {name!r} has results; there are: {there}")


def all_results() -> Iterator[Stored]:
    """Yield every result, damaged ones too, in a stable order.

    An empty folder is none: Snakemake makes it before the step has measured anything.
    """
    for platform in platforms():
        for folder in sorted(platform.glob("[!.]*/[!.]*")):
            if folder.is_dir() and any(folder.iterdir()):
                yield Stored(folder)


def read_record(stored: Stored) -> Record:
    """Return the checked provenance of a result.

    Raises:
        StoreError: it is missing or garbled, or it is that of another result.
    """
    name = shown(stored.folder / PROVENANCE)
    try:
        # As JSON, where strict types still let an object stand for a dataclass.
        record = TypeAdapter(Record).validate_json(json.dumps(stored.provenance))
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"])) or "the whole"
        raise StoreError(f"{name} is garbled: {key}: {fault['msg']}") from None
    if (record.step, record.version) != (stored.step, stored.version):
        raise StoreError(f"{name} is that of {record.step}/{record.version}")
    return record


def damage(stored: Stored) -> str | None:
    """Return in one line what is wrong with a result; None where it is whole."""
    try:
        read_record(stored)
        stored.tables()
    except StoreError as error:
        return str(error)
    return None


def find(asked: str) -> Stored:
    """Return the one result that is meant by the first characters of its version.

    Platform and step can stand before it (`local/cpu_timing/6c19`), since several platforms may
    have results of one version.

    Raises:
        StoreError: there is none, or more than one.
    """
    *context, prefix = asked.removesuffix("/").split("/")
    if len(prefix) < LEAST_PREFIX:
        raise StoreError(f"{asked!r}: give at least {LEAST_PREFIX} characters of a version")
    everything = list(all_results())
    beside = [it for it in everything if {*context} <= {RESULTS.name, it.platform, it.step}]
    found = [it for it in beside if it.version.startswith(prefix)]
    found = [it for it in found if it.version == prefix] or found
    if len(found) > 1:
        raise StoreError(f"{asked!r} is ambiguous: {_named(found)}")
    if not found:
        versions = {it.version for it in everything}
        nearest = difflib.get_close_matches(prefix, versions, n=NEAREST, cutoff=0)
        close = _named(it for it in everything if it.version in nearest)
        there = f"the nearest: {close}" if close else "there are no results"
        raise StoreError(f"{asked!r}: no such version; {there}")
    return found[0]


def current_versions(overrides: Iterable[str]) -> set[tuple[str, str]]:
    """Return (step, version) of every result of the present source and configuration.

    Raises:
        ConfigError: an override is not accepted.
        SourceError: a source file cannot be found or parsed.
    """
    return {(it.step, it.version) for it in make_plan(tuple(overrides)).all_results()}


def _named(results: Iterable[Stored]) -> str:
    return ", ".join(f"{it.platform}/{it.step}/{it.version}" for it in results)
