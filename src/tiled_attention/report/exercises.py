"""The article's three exercises, answered from this run's tables."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

Tables = Mapping[str, Mapping[str, pd.DataFrame]]
Article = Mapping[str, Any]

SAME_ORDER = 10.0
POOR_FIT_PERCENT = 15.0


def another_seed(tables: Tables, article: Article) -> dict[str, Any] | None:
    """Exercise 1: does the difference keep its order of magnitude with another seed and block?"""
    checks = tables["correctness"]["result"].query(
        "case == 'article' and implementation == 'tiled'"
    )
    block_size = article["exercise_1"]["block_size"]
    first = checks[checks["block_size"] == article["correctness"]["block_size"]].head(1)
    if first.empty:
        return None
    seed = first["seed"].iloc[0]
    others = checks[(checks["block_size"] == block_size) & (checks["seed"] != seed)]
    if others.empty:
        return None
    difference = float(first["max_abs_difference"].iloc[0])
    low, high = others["max_abs_difference"].min(), others["max_abs_difference"].max()
    return {
        "seed": seed,
        "difference": difference,
        "block_size": block_size,
        "seeds": len(others),
        "low": low,
        "high": high,
        "same_order": bool(high / difference < SAME_ORDER and difference / low < SAME_ORDER),
    }


def outgrows_a100(tables: Tables, article: Article) -> dict[str, Any] | None:
    """Exercise 2: the first length whose naive scores exceed 40 GB, read both ways."""
    asked = article["exercise_2"]
    devices = tables["byte_arithmetic"]["devices"].query(
        f"device == '{asked['device']}' and heads == {asked['heads']}"
    )
    if devices.empty:
        return None
    found = dict(zip(devices["reading"], devices["first_exceeding_length"], strict=True))
    return {"heads": asked["heads"], "found": found, "article": asked["first_exceeding"]}


def cpu_crossover(tables: Tables) -> list[dict[str, Any]]:
    """Exercise 3: each implementation's predicted crossover and what longer lengths said."""
    confirmation = tables["crossover"].get("confirmation", pd.DataFrame())
    rows = []
    for row in tables["crossover"].get("result", pd.DataFrame()).to_dict("records"):
        own = (
            confirmation[confirmation["implementation"] == row["implementation"]]
            if len(confirmation)
            else confirmation
        )
        rows.append(
            row
            | {
                "poor_fit": poor_fit(row),
                "longer": own.to_dict("records"),
                "sentence": in_words(row),
            }
        )
    return rows


def poor_fit(row: Mapping[str, Any]) -> float | None:
    """Return by how many percent the models miss their own points, where that is much."""
    worst = row.get("worst_residual_percent", float("nan"))
    return worst if worst > POOR_FIT_PERCENT else None


def in_words(row: Mapping[str, Any]) -> str:
    """Return what the fit says, with its interval; never a bare number."""
    match row["kind"]:
        case "not identifiable":
            return f"no prediction ({row['verdict']})"
        case "crosses" | "crosses twice or more":
            again = ", and the curves cross again later" if "twice" in row["kind"] else ""
            return f"faster from S = {_length(row['predicted_length'])} on {_interval(row)}{again}"
        case "slower from here on":
            return f"slower from S = {_length(row['predicted_length'])} on {_interval(row)}"
        case "already faster":
            return f"already faster at the shortest fitted length {_interval(row)}"
        case "never faster":
            return f"never, as far as the model reaches {_interval(row)}"
        case _:
            return "no difference over the whole range"


def _interval(row: Mapping[str, Any]) -> str:
    if row["ci_low"] == row["ci_high"]:
        return "(in every refit)"
    return f"[{_length(row['ci_low'])}, {_length(row['ci_high'])}]"


def _length(value: float) -> str:
    if pd.isna(value):
        return "?"
    if value == 0:
        return "below the shortest"
    return "never" if value == float("inf") else f"{value:,.0f}"
