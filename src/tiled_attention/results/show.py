"""`show`: where a result came from, and its tables."""

import json
from typing import Any

from tiled_attention.results.folders import Record, find, read_record
from tiled_attention.results.printing import dotted, table_text, time_text
from tiled_attention.store import shown


def show(version: str, rows: int) -> None:
    """Print a result's provenance in short, then the first rows of each of its tables.

    Raises:
        StoreError: no such version, an ambiguous one, or a damaged result.
    """
    stored = find(version)
    record = read_record(stored)
    tables = stored.tables()
    print(shown(stored.folder))
    for name, text in _summary(record).items():
        print(f"  {name:<9} {text}")
    for key, value in dotted(record.options).items():
        print(f"  {key} = {json.dumps(value, ensure_ascii=False)}")
    for name, table in tables.items():
        print(f"\n{name}.csv\n{table_text(table, rows)}")


def _summary(record: Record) -> dict[str, str]:
    return {
        "subject": record.subject or "-",
        "measured": f"{time_text(record.started)} to {time_text(record.ended)} UTC",
        "machine": _listed(record.machine),
        "software": _listed(record.software),
        "git": _listed({"commit": record.git.commit, "clean": record.git.clean}),
        "sources": f"{len(record.sources)} files",
        "reads": ", ".join(record.reads) or "no results",
    }


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items() if value is not None)
