"""The report's tables: the article's figure beside this run's, ready for the template."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from tiled_attention.evidence import Evidence

Rows = list[dict[str, Any]]
Tables = Mapping[str, Mapping[str, pd.DataFrame]]
Article = Mapping[str, Any]


def correctness_check(tables: Tables, article: Article) -> dict[str, Any]:
    """Return Table 1: tiled against naive at the article's length, block and first seed."""
    published = article["correctness"]
    checks = tables["correctness"]["result"].query("case == 'article'")
    counted = tables["byte_arithmetic"]["check"]
    of_tiled = checks[
        (checks["implementation"] == "tiled") & (checks["block_size"] == published["block_size"])
    ]
    return {
        "article": published,
        "check": _first(of_tiled),
        "naive": _first(checks[checks["implementation"] == "naive"]),
        "counted": _first(counted[counted["block_size"] == published["block_size"]]),
    }


def production_sizes(tables: Tables, article: Article) -> Rows:
    """Return Table 2: counted sizes, with the published ones where there are any."""
    published = {row["length"]: row for row in article["sizes"]}
    counted = tables["byte_arithmetic"]["result"].to_dict("records")
    return [row | {"article": published.get(row["length"])} for row in counted]


def cpu_times(tables: Tables, article: Article) -> Rows:
    """Return Table 3: naive and tiled at every length, with the published times."""
    published = {row["length"]: row for row in article["timing"]}
    results = tables["cpu_timing"]["result"].query("series == 'lengths'")
    rows = []
    for length, group in results.groupby("length"):
        by_name = {row["implementation"]: row for row in group.to_dict("records")}
        rows.append(
            {
                "length": length,
                "article": published.get(length),
                "naive": by_name.get("naive"),
                "tiled": by_name.get("tiled"),
            }
        )
    return rows


def ratios(results: pd.DataFrame) -> dict[str, Any]:
    """Return every implementation's row at every length, to be read across."""
    lengths = results.query("series == 'lengths'")
    return {
        "lengths": sorted(lengths["length"].unique()),
        "rows": {
            name: {row["length"]: row for row in own.to_dict("records")}
            for name, own in lengths.groupby("implementation", sort=False)
        },
    }


def recorded_ratios(evidence: Evidence) -> Rows:
    """Return the timings of other platforms, each marked as current or older."""
    return [
        {
            "platform": recorded.stored.platform,
            "version": recorded.stored.version,
            "current": recorded.current,
            "cpu": recorded.stored.provenance["machine"]["cpu"],
            "threads": int(recorded.stored.table()["threads"].iloc[0]),
            "ratios": ratios(recorded.stored.table()),
        }
        for recorded in evidence.beside("cpu_timing")
    ]


def peak_accounts(tables: Tables) -> Rows:
    """Return measured peak, own account and what it is made of, at the longest length."""
    measured = tables["peak_memory"]["result"]
    account = tables["peak_memory"]["account"]
    longest = measured[measured["length"] == measured["length"].max()]
    rows = []
    for row in longest.to_dict("records"):
        own = account[
            (account["implementation"] == row["implementation"])
            & (account["length"] == row["length"])
        ]
        rows.append(row | {"held": own.to_dict("records")})
    return rows


def largest_disagreement(tables: Tables) -> float:
    """Return the largest relative difference of a measured peak from its account."""
    measured = tables["peak_memory"]["result"].query("status == 'ok'")
    return float((measured["measured_bytes"] / measured["account_bytes"] - 1).abs().max())


def device_limits(tables: Tables) -> Rows:
    """Return the first length that exceeds each device, by heads and reading of its memory."""
    devices = tables["byte_arithmetic"]["devices"]
    rows = []
    for device, own in devices.groupby("device", sort=False):
        cells = {
            f"{row['heads']} {row['reading']}": row["first_exceeding_length"]
            for row in own.to_dict("records")
        }
        rows.append({"device": device, "name": own["device_name"].iloc[0], "first": cells})
    return sorted(rows, key=lambda row: (min(row["first"].values()), row["name"]))


def gate_summary(tables: Tables, step: str = "correctness") -> Rows:
    """Return passed, failed and skipped cases of each implementation, failures first."""
    rows = []
    judged = tables.get(step, {}).get("result", pd.DataFrame(columns=["implementation"]))
    for name, own in judged.groupby("implementation", sort=False):
        failed = own[own["passed"].eq(False).fillna(False)]
        skipped = own[own["passed"].isna()]
        margin = (own["max_abs_error"] / own["tolerance"].where(own["tolerance"] > 0)).max()
        reasons = skipped.groupby("status")["case"].agg(lambda cases: sorted(set(cases)))
        rows.append(
            {
                "implementation": name,
                "ran_on": own["ran_on"].iloc[0] if "ran_on" in own else "CPU",
                "passed": len(own) - len(failed) - len(skipped),
                "failed": failed.to_dict("records"),
                "skipped": len(skipped),
                "reasons": {
                    str(status).removeprefix("skipped: "): cases
                    for status, cases in reasons.items()
                },
                "margin": margin,
            }
        )
    return sorted(rows, key=lambda row: -len(row["failed"]))


def sensitivity(tables: Tables, fixed: Iterable[float]) -> Rows:
    """Return each mutant's margin, and whether fixed absolute tolerances would pass it."""
    rows = []
    judged = tables["gate_sensitivity"]["result"]
    for (name, dtype), own in judged.groupby(["mutant", "dtype"], sort=False):
        rows.append(
            {
                "mutant": name,
                "fault": own["fault"].iloc[0],
                "dtype": dtype,
                "rejected": bool(own["passed"].eq(False).any()),
                "margin": (own["max_abs_error"] / own["tolerance"]).max(),
                "difference": own["max_abs_difference"].max(),
                "fixed": {
                    limit: bool((own["max_abs_difference"] <= limit).all()) for limit in fixed
                },
            }
        )
    return rows


def _first(rows: pd.DataFrame) -> dict[str, Any] | None:
    return None if rows.empty else {str(k): v for k, v in rows.iloc[0].to_dict().items()}
