"""List, show, compare and prune versioned results: `python -m tiled_attention.results --help`."""

import argparse
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

from tiled_attention.compose import ConfigError
from tiled_attention.plan import LOCAL, RESULTS, make_plan
from tiled_attention.sources import SourceError
from tiled_attention.store import Stored, StoreError, shown, stored_results

LEAST_PREFIX = 4
HALF_WRITTEN_SECONDS = 3600
# Columns that say what a row is about; all others hold what was found.
KEYS = (
    "series", "implementation", "baseline", "mutant", "case", "dtype", "batch", "heads",
    "heads_kv", "length", "length_q", "length_kv", "head_dim", "causal", "block_size", "seed",
    "device", "reading", "term", "held", "round", "position",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code, 2 for what its user can mend."""
    chosen = _parser().parse_args(arguments)
    try:
        chosen.run(chosen)
    except (StoreError, ConfigError, SourceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()
    return 0


def list_results(chosen: argparse.Namespace) -> None:
    """Print one line a result, current or older."""
    current = _current(chosen.overrides)
    rows = []
    for stored in stored_results(RESULTS, chosen.platform or "*"):
        if chosen.step in (None, stored.step):
            rows.append(_row(stored, current))
    if not rows:
        print("no results")
        return
    table = pd.DataFrame(rows).sort_values(["platform", "step", "when (UTC)"], kind="stable")
    print(table.to_string(index=False))


def show(chosen: argparse.Namespace) -> None:
    """Print where a result came from, and its tables."""
    stored = find(chosen.version)
    tables = stored.tables()
    print(shown(stored.folder))
    for key, value in stored.provenance.items():
        if key not in ("files", "sources"):
            for name, text in _flat({key: value}).items():
                print(f"  {name}: {text}")
    for name, table in tables.items():
        print(f"\n{name}.csv\n{table.to_string(index=False)}")


def diff(chosen: argparse.Namespace) -> None:
    """Print what two results of one step differ in, and their rows side by side."""
    one, other = find(chosen.a), find(chosen.b)
    if one.step != other.step:
        raise StoreError(f"{one.version} is of {one.step}, {other.version} of {other.step}")
    for key in ("sources", "options", "reads", "machine", "software"):
        before, after = (_flat({key: it.provenance[key]}) for it in (one, other))
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                old, new = before.get(name, "not there"), after.get(name, "not there")
                print(f"{name}: {_short(key, old)} -> {_short(key, new)}")
    print(f"\n{side_by_side(one.table(), other.table()).to_string(index=False)}")
    if one.step == "cpu_timing":
        print(
            "\nTwo runs differ by the machine's state too: times of one run compare, these do not."
        )


def side_by_side(one: pd.DataFrame, other: pd.DataFrame) -> pd.DataFrame:
    """Join two tables on what their rows are about; rows of only one have no value in the other.

    For every number that both have, `ratio` columns hold the second by the first.
    """
    keys = [column for column in one.columns if column in KEYS and column in other.columns]
    ordinals = [table.groupby(keys, dropna=False).cumcount() for table in (one, other)]
    joined = one.assign(_row=ordinals[0]).merge(
        other.assign(_row=ordinals[1]), on=[*keys, "_row"], how="outer", suffixes=(" A", " B")
    )
    for column in one.select_dtypes("number").columns:
        if {f"{column} A", f"{column} B"} <= set(joined.columns):
            joined[f"{column} B/A"] = joined[f"{column} B"] / joined[f"{column} A"]
    return joined.drop(columns="_row")


def prune(chosen: argparse.Namespace) -> None:
    """List what is no longer current, and what killed runs left; delete it with --yes."""
    current = _current(chosen.overrides)
    unneeded = [
        stored.folder
        for stored in stored_results(RESULTS, chosen.platform)
        if (stored.step, stored.version) not in current
    ]
    unneeded += [
        path
        for path in (RESULTS / chosen.platform).glob("*/.*")
        if path.is_dir() and time.time() - path.stat().st_mtime > HALF_WRITTEN_SECONDS
    ]
    total = 0
    for folder in unneeded:
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        total += size
        print(f"{shown(folder)}  {size / 1e3:,.0f} kB")
        if chosen.yes:
            shutil.rmtree(folder)
    done = "freed" if chosen.yes else "would be freed; --yes deletes"
    print(f"{len(unneeded)} folders, {total / 1e3:,.0f} kB {done}")


def find(version: str) -> Stored:
    """Return the one result whose version starts with the given text.

    Raises:
        StoreError: there is none, or more than one.
    """
    if len(version) < LEAST_PREFIX:
        raise StoreError(
            f"{version!r}: at least {LEAST_PREFIX} characters of a version are needed"
        )
    found = [it for it in stored_results(RESULTS) if it.version.startswith(version)]
    exact = [it for it in found if it.version == version]
    found = exact or found
    if not found:
        raise StoreError(f"{version!r}: no such version; `list` shows them")
    if len(found) > 1:
        raise StoreError(
            f"{version!r} is ambiguous: {', '.join(shown(it.folder) for it in found)}"
        )
    return found[0]


def _current(overrides: Iterable[str]) -> set[tuple[str, str]]:
    """Return (step, version) of every result of the present source and configuration."""
    return {(it.step, it.version) for it in make_plan(tuple(overrides)).all_results()}


def _row(stored: Stored, current: set[tuple[str, str]]) -> dict[str, Any]:
    row = {"platform": stored.platform, "step": stored.step, "of": "-", "version": stored.version}
    try:
        record = stored.provenance
        git = record["git"]
        mark = "" if git["clean"] else "+"
        return row | {
            "of": record["subject"] or "-",
            "when (UTC)": record["ended"],
            "cpu": record["machine"]["cpu"],
            "commit": (git["commit"] or "unknown")[:10] + mark,
            "state": "current" if (stored.step, stored.version) in current else "older",
        }
    except (StoreError, KeyError, TypeError):
        return row | {"when (UTC)": "", "cpu": "", "commit": "", "state": "damaged"}


def _flat(value: Any, prefix: str = "") -> dict[str, str]:
    """Return {dotted key: text} of nested mappings."""
    if not isinstance(value, dict):
        return {prefix: str(value)}
    flat: dict[str, str] = {}
    for key, inner in value.items():
        flat |= _flat(inner, f"{prefix}.{key}" if prefix else str(key))
    return flat


def _short(key: str, text: str) -> str:
    return text[:10] if key == "sources" and text != "not there" else text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tiled_attention.results", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="list | show | diff | prune")
    overrides: dict[str, Any] = {
        "nargs": "*",
        "help": "Hydra overrides that make the current configuration",
    }

    command = commands.add_parser("list", help="what there is, and what is current")
    command.add_argument("--platform", help="of this platform only")
    command.add_argument("--step", help="of this step only")
    command.add_argument("overrides", **overrides)
    command.set_defaults(run=list_results)

    command = commands.add_parser("show", help="one result and where it came from")
    command.add_argument("version", help=f"a version, or its first characters ({LEAST_PREFIX}+)")
    command.set_defaults(run=show)

    command = commands.add_parser("diff", help="what two results of a step differ in")
    command.add_argument("a", help="a version")
    command.add_argument("b", help="another version of the same step")
    command.set_defaults(run=diff)

    command = commands.add_parser("prune", help="what is no longer current")
    command.add_argument("--platform", default=LOCAL, help="default: %(default)s")
    command.add_argument("--yes", action="store_true", help="delete it")
    command.add_argument("overrides", **overrides)
    command.set_defaults(run=prune)
    return parser


if __name__ == "__main__":
    sys.exit(main())
