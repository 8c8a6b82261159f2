"""`list`: every result, and whether it is one of the present source and configuration."""

from typing import Any

import pandas as pd

from tiled_attention.results.folders import all_results, current_versions, damage, read_record
from tiled_attention.results.printing import table_text, time_text
from tiled_attention.store import Stored

COMMIT_LENGTH = 10
ORDER = ["platform", "step", "when (UTC)"]


def list_results(platform: str | None, step: str | None, overrides: list[str]) -> None:
    """Print a table with one row a result, then one line for each damaged one."""
    current = current_versions(overrides)
    faults = {
        stored: damage(stored)
        for stored in all_results()
        if platform in (None, stored.platform) and step in (None, stored.step)
    }
    if not faults:
        chosen = [name for name in (platform, step) if name is not None]
        print(" ".join(["no results", *(["of", *chosen] if chosen else [])]))
        return
    rows = [
        {
            "platform": stored.platform,
            "step": stored.step,
            **({"subject": "-"} if fault else _origin(stored)),
            "version": stored.version,
            "state": "damaged" if fault else _state(stored, current),
        }
        for stored, fault in faults.items()
    ]
    columns = ["platform", "step", "subject", "version", "when (UTC)", "cpu", "commit", "state"]
    table = pd.DataFrame(rows, columns=columns)
    print(table_text(table.sort_values(ORDER, kind="stable")))
    for fault in filter(None, faults.values()):
        print(f"damaged: {fault}")


def _origin(stored: Stored) -> dict[str, Any]:
    record = read_record(stored)
    commit = (record.git.commit or "unknown")[:COMMIT_LENGTH]
    return {
        "subject": record.subject or "-",
        "when (UTC)": time_text(record.ended),
        "cpu": record.machine.get("cpu"),
        "commit": commit + ("+" if record.git.clean is False else ""),
    }


def _state(stored: Stored, current: set[tuple[str, str]]) -> str:
    return "current" if (stored.step, stored.version) in current else "older"
