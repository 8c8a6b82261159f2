"""Tables and nested options as text for a terminal."""

from collections.abc import Mapping
from typing import Any

import pandas as pd


def table_text(table: pd.DataFrame, rows: int | None = None) -> str:
    """Return a table's first rows, all of them for None; '-' stands for a missing value."""
    if table.empty:
        return "no rows"
    first = table if rows is None else table.head(rows)
    text = str(first.map(_cell).to_string(index=False))
    if rows is not None and len(table) > rows:
        text += f"\n... {len(table) - rows:,} more rows; --rows {len(table)} shows them"
    return text


def _cell(value: Any) -> str:
    if pd.isna(value):
        return "-"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"
    return str(value)


def time_text(time: str) -> str:
    """Return a time of provenance.json (ISO, in UTC) without its marks."""
    return time.replace("T", " ").removesuffix("+00:00")


def dotted(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return {dotted key: value} of nested mappings."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        inner = isinstance(value, Mapping) and value
        flat |= dotted(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": value}
    return flat
