"""`diff`: what two results of a step were made from, and their rows side by side."""

import json
from collections.abc import Iterator
from typing import Any

from tiled_attention.results.folders import Record, find, read_record
from tiled_attention.results.printing import dotted, table_text, time_text
from tiled_attention.results.side_by_side import KEYS, MEDIAN, side_by_side
from tiled_attention.store import StoreError

SECTIONS = ("sources", "options", "reads", "machine", "software")
HASH_LENGTH = 10
SAMPLES = "samples"


def diff(a: str, b: str, rows: int) -> None:
    """Print what differs between two results of one step.

    Raises:
        StoreError: no such version, an ambiguous one, a damaged result, or two steps.
    """
    one, other = find(a), find(b)
    if one.step != other.step:
        raise StoreError(
            f"results of two steps cannot be compared: {one.version} is of {one.step}, "
            f"{other.version} of {other.step}"
        )
    records = (read_record(one), read_record(other))
    before, after = one.tables(), other.tables()
    for name, stored, record in zip("AB", (one, other), records, strict=True):
        place = f"{stored.platform}/{stored.step}/{stored.version}"
        print(f"{name}  {place}  {time_text(record.ended)} UTC")
    for line in origins(*records):
        print(line)
    keys = set(KEYS) - ({"implementation"} if records[0].subject != records[1].subject else set())
    for name in dict.fromkeys([*before, *after]):
        print(f"\n{name}.csv")
        if name == SAMPLES:
            print("not compared: the raw samples of two runs are no pairs")
        elif name in before and name in after:
            joined = side_by_side(before[name], after[name], keys)
            for line in joined.notes:
                print(line)
            if len(joined.rows):
                print(table_text(joined.rows, rows))
        else:
            print(f"only in {'A' if name in before else 'B'}")
    if any(MEDIAN in table for table in before.values()):
        print(
            f"\n{MEDIAN} B/A compares two separate runs, which differ by the machine's state "
            "too: it is no proof. Ratios within one run are."
        )


def origins(one: Record, other: Record) -> Iterator[str]:
    """Yield a line for each source, option, result read, machine or software that differs."""
    for section in SECTIONS:
        before, after = (_facts(getattr(record, section)) for record in (one, other))
        names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        yield f"{section}:" if names else f"{section}: the same"
        for name in names:
            values = [_shown(section, it[name]) for it in (before, after) if name in it]
            change = "changed" if len(values) == 2 else "removed" if name in before else "added"
            yield f"  {change:<7}  {name} {' -> '.join(values)}".rstrip()


def _facts(section: Any) -> dict[str, str]:
    """Return {name: JSON} of a section, whose values may be nested; of a list, its items."""
    if isinstance(section, list):
        return dict.fromkeys(section, "")
    return {name: json.dumps(it, ensure_ascii=False) for name, it in dotted(section).items()}


def _shown(section: str, fact: str) -> str:
    return fact[1 : HASH_LENGTH + 1] if section == "sources" else fact
