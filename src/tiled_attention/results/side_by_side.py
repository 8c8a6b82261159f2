"""The rows of two tables side by side, joined on what they are about."""

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd
from pandas.api.types import is_numeric_dtype

MEDIAN = "median_ms"
RATIO = f"{MEDIAN} B/A"
# Columns that say what a row is about; all others hold what was found.
KEYS = (
    "series", "implementation", "baseline", "mutant", "case", "dtype", "batch", "heads",
    "heads_kv", "length", "length_q", "length_kv", "head_dim", "causal", "block_size", "seed",
    "device", "reading", "term", "held",
)  # fmt: skip


@dataclass(frozen=True)
class SideBySide:
    """The rows in which two tables differ, and what all rows have in common."""

    rows: pd.DataFrame  # what a row is about, then `COLUMN A` and `COLUMN B`
    notes: list[str]


def side_by_side(
    one: pd.DataFrame, other: pd.DataFrame, keys: Collection[str] = KEYS
) -> SideBySide:
    """Join two tables on those key columns that both have; rows of one key in their order.

    Columns and rows that are the same in both are left out and noted. Where a row is in one
    table only, a column `in` says in which. `RATIO` is the second median by the first.
    """
    keys = [column for column in one.columns if column in keys and column in other.columns]
    joined = _joined(one, other, keys)
    whole = joined["in"].eq("both")
    found = [column for column in dict.fromkeys([*one, *other]) if column not in keys]
    differing = pd.DataFrame({it: _differs(joined, it) for it in found}, index=joined.index)
    changed = ~whole | differing.any(axis=1)
    columns = [column for column in found if differing[column].any() or not whole.all()]

    notes = []
    if not changed.all():
        notes.append(f"{len(joined) - changed.sum()} of {len(joined)} rows are the same")
    rows = joined[changed]
    constant = [key for key in keys if len(rows) > 1 and rows[key].nunique(dropna=False) == 1]
    if constant:
        values = (f"{key} {rows[key].iloc[0]}" for key in constant)
        notes.append(f"in every row below: {', '.join(values)}")
    same = [column for column in found if column not in columns]
    if same and len(rows):
        notes.append(f"the same in A and B: {', '.join(same)}")

    shown = [key for key in keys if key not in constant]
    shown += [] if whole.all() else ["in"]
    for column in columns:
        shown += [name for name in (f"{column} A", f"{column} B") if name in rows]
        if column == MEDIAN and {f"{MEDIAN} A", f"{MEDIAN} B"} <= set(shown):
            rows = rows.assign(**{RATIO: rows[f"{MEDIAN} B"] / rows[f"{MEDIAN} A"]})
            shown.append(RATIO)
    return SideBySide(rows[shown], notes)


def _joined(one: pd.DataFrame, other: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the outer join, in the order of A and then of B, with `in`: both, A or B."""
    tables = []
    for label, table in (("A", one), ("B", other)):
        place = f"place in {label}"
        table = table.rename(columns={it: f"{it} {label}" for it in table if it not in keys})
        repeat = table.groupby(keys, dropna=False).cumcount() if keys else range(len(table))
        tables.append(table.assign(**{"repeat": repeat, place: range(len(table))}))
    for key in keys:
        if not all(is_numeric_dtype(table[key]) for table in tables):
            tables = [table.astype({key: "str"}) for table in tables]
    joined = tables[0].merge(tables[1], on=[*keys, "repeat"], how="outer", indicator="in")
    joined["in"] = joined["in"].map({"both": "both", "left_only": "A", "right_only": "B"})
    return joined.sort_values(["place in A", "place in B"], ignore_index=True)


def _differs(joined: pd.DataFrame, column: str) -> pd.Series:
    """Tell row by row whether A and B differ; two missing values do not."""
    if not {f"{column} A", f"{column} B"} <= set(joined):
        return pd.Series(True, index=joined.index)
    one, other = (joined[f"{column} {label}"].astype(object) for label in "AB")
    return one.ne(other) & ~(one.isna() & other.isna())
