"""The rows that there are to draw, and sentences about those that there are not."""

import pandas as pd

TIME = ("median_ms", "ci_low_ms", "ci_high_ms")
RATIO = ("ratio_to_naive", "ratio_ci_low", "ratio_ci_high")


def of_series(results: pd.DataFrame, series: str) -> pd.DataFrame:
    """Return the rows of one series of cpu_timing's table, which may be wholly empty."""
    if results.empty:
        columns = ["implementation", "length", "block_size", "status", *TIME, *RATIO]
        return pd.DataFrame(columns=columns, dtype=float)
    return results[results["series"] == series]


def with_value(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the rows that were not skipped and hold a value in the column."""
    return rows[(rows["status"] == "ok") & rows[column].notna()]


def reason(status: str) -> str:
    """Return a status without the word before its reason."""
    return status.partition(": ")[2] or status


def why_nothing(asked: pd.DataFrame, no_value: str = "the values are missing") -> str:
    """Say why none of the rows has a value; `no_value` where their status tells nothing."""
    if asked.empty:
        return "nothing was asked for"
    reasons = [reason(status) for status in asked["status"].unique() if status != "ok"]
    return "; ".join(reasons) or no_value


def gaps(
    asked: pd.DataFrame, drawn: pd.DataFrame, what: str, no_value: str = "the value is missing"
) -> list[str]:
    """Say which implementations have no value at which lengths, and why.

    `drawn` are those of the rows `asked` that have a value; `what` names it.
    """
    names: dict[str, list[str]] = {}
    every = asked["length"].nunique()
    for name, rows in asked.drop(drawn.index).groupby("implementation", sort=False):
        status = rows["status"].iloc[0]
        because = no_value if status == "ok" else reason(status)
        lengths = ", ".join(f"{length:,}" for length in sorted(rows["length"]))
        where = f" at S = {lengths}" if len(rows) < every else ""
        names.setdefault(f"{where}: {because}.", []).append(str(name))
    return [f"No {what} of {', '.join(same)}{rest}" for rest, same in names.items()]
