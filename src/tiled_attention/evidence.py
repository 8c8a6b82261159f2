"""Everything a figure or a report draws on: this platform's tables, and the others' beside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from tiled_attention.plan import MEASURED, Plan, Planned, Recorded
from tiled_attention.store import Stored, StoreError, exists, shown


def put_together(results: Iterable[Stored]) -> dict[str, dict[str, pd.DataFrame]]:
    """Return tables by step and name, those of several results of a step one below the other.

    Raises:
        StoreError: a result is damaged.
    """
    found: dict[str, dict[str, list[pd.DataFrame]]] = {}
    for stored in results:
        for name, table in stored.tables().items():
            found.setdefault(stored.step, {}).setdefault(name, []).append(table)
    return {
        step: {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
        for step, tables in found.items()
    }


@dataclass(frozen=True)
class Evidence:
    """The stored results of one plan."""

    plan: Plan

    @cached_property
    def tables(self) -> dict[str, dict[str, pd.DataFrame]]:
        """Tables of this platform by step and name; those of all implementations put together.

        Raises:
            StoreError: a planned result is missing or damaged.
        """
        return put_together(
            self.stored(planned) for step in MEASURED for planned in self.plan.results[step]
        )

    def stored(self, planned: Planned) -> Stored:
        """Return the stored result; raises StoreError where it is missing."""
        folder = planned.folder(self.plan.platform)
        if not exists(folder):
            raise StoreError(
                f"{planned.step}: {shown(folder)} is not there; run snakemake to make it"
            )
        return Stored(folder)

    def beside(self, step: str) -> list[Recorded]:
        """Return the results of other platforms for a step."""
        return [it for it in self.plan.recorded if it.stored.step == step]
