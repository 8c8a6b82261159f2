"""Everything a figure or a report draws on: this platform's tables, and the others' beside it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from tiled_attention.pipeline import MEASURED
from tiled_attention.plan import Plan, Planned, Recorded
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

        A step that was planned on other platforms alone, as a GPU's may be, is not among them.

        Raises:
            StoreError: a planned result is missing or damaged.
        """
        return put_together(
            self.stored(planned) for step in MEASURED for planned in self.planned_here(step)
        )

    def planned_here(self, step: str) -> list[Planned]:
        """Return a step's planned results on this platform."""
        return [it for it in self.plan.results[step] if it.platform == self.plan.platform]

    def stored(self, planned: Planned) -> Stored:
        """Return the stored result; raises StoreError where it is missing."""
        if not exists(planned.folder):
            raise StoreError(
                f"{planned.step}: {shown(planned.folder)} is not there; run snakemake to make it"
            )
        return Stored(planned.folder)

    def beside(self, step: str) -> list[Recorded]:
        """Return a step's results on other platforms: planned in this run, then recorded ones."""
        others = [it for it in self.plan.results[step] if it.platform != self.plan.platform]
        planned = [Recorded(self.stored(it), current=True) for it in others]
        return planned + [it for it in self.plan.recorded if it.stored.step == step]

    def everywhere(self, step: str) -> list[Recorded]:
        """Return a step's results on this platform, if any, and then on the others."""
        own = [Recorded(self.stored(it), current=True) for it in self.planned_here(step)]
        return own + self.beside(step)
