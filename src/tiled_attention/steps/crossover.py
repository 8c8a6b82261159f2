"""Crossover: from which length on is an implementation faster than the baseline?

Cost models are fitted to the article's lengths only; the crossover that they predict carries a
bootstrap interval, and the longer lengths, which the fit did not see, confirm or refute it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import linregress
from tqdm import tqdm

from tiled_attention.cost_models import CostModel, Crossing, NotEnoughDataError, crossing
from tiled_attention.resampling import Fitted, bootstrap_pairs, quantiles

Array = NDArray[np.float64]
CURVE_POINTS = 60
BASELINE = "naive"  # the one that cpu_timing takes every ratio to


def measure(
    options: Mapping[str, Any], inputs: Mapping[str, Mapping[str, pd.DataFrame]]
) -> dict[str, pd.DataFrame]:
    """Return "result" and what stands behind it.

    "terms": fitted coefficients; "residuals": fit beside measurement; "confirmation": the lengths
    that the fit did not see; "curves": modelled ratio by length, with its band; "block_cost":
    time by number of blocks at one length.
    """
    chosen = options["crossover"]
    timing = inputs["cpu_timing"]
    samples = timing["samples"]
    rows: dict[str, list[pd.DataFrame]] = {
        name: [] for name in ("result", "terms", "residuals", "confirmation", "curves")
    }
    lengths = timing["result"].query("series == 'lengths'")
    names = lengths["implementation"].drop_duplicates()
    for name in tqdm(names[names != BASELINE], desc="crossover", disable=None):
        tables = one_crossover(name, lengths, samples.query("series == 'lengths'"), chosen)
        for key, table in tables.items():
            rows[key].append(table)
    for key, table in baseline_tables(
        lengths, samples.query("series == 'lengths'"), chosen
    ).items():
        rows[key].append(table)
    tables = {key: pd.concat(parts, ignore_index=True) for key, parts in rows.items() if parts}
    return tables | {"block_cost": block_cost(samples.query("series == 'block sweep'"), chosen)}


def one_crossover(
    name: str, lengths: pd.DataFrame, samples: pd.DataFrame, chosen: Mapping[str, Any]
) -> dict[str, pd.DataFrame]:
    """Return the tables of one implementation against the baseline."""
    fitted_lengths = sorted(chosen["fitted_lengths"])
    row: dict[str, Any] = {
        "implementation": name,
        "baseline": BASELINE,
        "fitted_on": " ".join(map(str, fitted_lengths)),
        "predicted_length": np.nan,
        "ci_low": np.nan,
        "ci_high": np.nan,
        "confirmed_on": "",
    }
    baseline = Fitted(samples, fitted_lengths, BASELINE)
    candidate = Fitted(samples, fitted_lengths, name)
    try:
        pair = baseline.model(), candidate.model()
    except NotEnoughDataError as error:
        return {
            "result": pd.DataFrame([row | {"kind": "not identifiable", "verdict": str(error)}])
        }
    ends = float(min(candidate.lengths)), float(max(candidate.lengths))
    found = crossing(*pair, *ends)
    pairs = bootstrap_pairs(baseline, candidate, chosen)
    tail = (1 - chosen["confidence"]) / 2
    crossings = np.array([crossing(*each, *ends).length for each in pairs])
    row["kind"] = found.kind
    row["limit_ratio"] = found.limit_ratio
    row["ci_low"], row["ci_high"] = quantiles(crossings, tail)
    if np.isfinite(found.length) and found.length > 0:
        row["predicted_length"] = found.length
    unseen = lengths[
        (lengths["implementation"] == name)
        & (lengths["status"] == "ok")
        & ~lengths["length"].isin(fitted_lengths)
    ]
    confirmation = confirm(unseen, pair, pairs, tail)
    both = [
        residuals(each, lengths, model, fitted_lengths)
        for each, model in zip((BASELINE, name), pair, strict=True)
    ]
    fit_quality = pd.concat(both).query("seen_by_fit")
    row["worst_residual_percent"] = fit_quality["residual_percent"].abs().max()
    row["confirmed_on"] = " ".join(map(str, confirmation["length"]))
    row["verdict"] = verdict(found, row, confirmation, longest=ends[1])
    grid = np.geomspace(ends[0], max(4 * ends[1], lengths["length"].max()), CURVE_POINTS)
    return {
        "result": pd.DataFrame([row]),
        "terms": terms(name, pair[1], [each[1] for each in pairs], tail),
        "residuals": both[1],
        "confirmation": confirmation,
        "curves": ratio_band(grid, pair, pairs, tail).assign(implementation=name),
    }


def baseline_tables(
    lengths: pd.DataFrame, samples: pd.DataFrame, chosen: Mapping[str, Any]
) -> dict[str, pd.DataFrame]:
    """Return terms and residuals of the baseline itself."""
    name, fitted_lengths = BASELINE, sorted(chosen["fitted_lengths"])
    fitted = Fitted(samples, fitted_lengths, name)
    try:
        model = fitted.model()
    except NotEnoughDataError:
        return {}
    refits = [baseline for baseline, _ in bootstrap_pairs(fitted, fitted, chosen)]
    tail = (1 - chosen["confidence"]) / 2
    return {
        "terms": terms(name, model, refits, tail),
        "residuals": residuals(name, lengths, model, fitted_lengths),
    }


def ratio_band(
    lengths: Array,
    pair: tuple[CostModel, CostModel],
    pairs: Sequence[tuple[CostModel, CostModel]],
    tail: float,
) -> pd.DataFrame:
    """Return the modelled ratio candidate / baseline by length, with its bootstrap band."""
    every = np.array(
        [candidate.time(lengths) / baseline.time(lengths) for baseline, candidate in pairs]
    )
    return pd.DataFrame(
        {
            "length": lengths,
            "predicted_ratio": pair[1].time(lengths) / pair[0].time(lengths),
            "predicted_low": np.quantile(every, tail, axis=0),
            "predicted_high": np.quantile(every, 1 - tail, axis=0),
        }
    )


def confirm(
    unseen: pd.DataFrame,
    pair: tuple[CostModel, CostModel],
    pairs: Sequence[tuple[CostModel, CostModel]],
    tail: float,
) -> pd.DataFrame:
    """Hold prediction against measurement at the lengths that the fit did not see.

    A side is `faster` or `slower` where the whole interval is on one side of 1, else `unclear`.
    """
    table = ratio_band(unseen["length"].to_numpy(dtype=float), pair, pairs, tail)
    table["length"] = unseen["length"].to_numpy()
    table.insert(0, "implementation", unseen["implementation"].to_numpy())
    for column, source in (
        ("measured_ratio", "ratio_to_naive"),
        ("measured_low", "ratio_ci_low"),
        ("measured_high", "ratio_ci_high"),
    ):
        table[column] = unseen[source].to_numpy()
    for kind in ("predicted", "measured"):
        low, high = table[f"{kind}_low"], table[f"{kind}_high"]
        table[f"{kind}_side"] = np.select([high < 1, low > 1], ["faster", "slower"], "unclear")
    return table


def verdict(
    found: Crossing, row: Mapping[str, Any], confirmation: pd.DataFrame, longest: float
) -> str:
    """Say what became of the prediction at the lengths that the fit did not see."""
    decided = confirmation[
        (confirmation["predicted_side"] != "unclear")
        & (confirmation["measured_side"] != "unclear")
    ]
    if confirmation.empty:
        outcome = "unconfirmed: no longer length was timed"
    elif decided.empty:
        outcome = "undecided: an interval spans 1 at every longer length"
    elif (decided["predicted_side"] == decided["measured_side"]).all():
        outcome = "confirmed"
    else:
        outcome = "refuted"
    if found.kind == "crosses" and found.length > longest:
        outcome += "; extrapolated beyond the fitted lengths"
    if found.kind == "crosses" and not np.isfinite(row["ci_high"]):
        outcome += "; may never come"
    return outcome


def terms(name: str, model: CostModel, refits: Sequence[CostModel], tail: float) -> pd.DataFrame:
    """Return the fitted coefficients with their intervals."""
    units = {"fixed": "ms", "per_block": "ms/block", "quadratic": "ms/length^2", "floor": "ms"}
    rows = []
    for term, unit in units.items():
        low, high = quantiles(np.array([getattr(refit, term) for refit in refits]), tail)
        rows.append(
            {
                "implementation": name,
                "term": term,
                "unit": unit,
                "value": getattr(model, term),
                "ci_low": low,
                "ci_high": high,
            }
        )
    return pd.DataFrame(rows)


def residuals(
    name: str, lengths: pd.DataFrame, model: CostModel, fitted_lengths: Sequence[int]
) -> pd.DataFrame:
    """Return measured and modelled time at every timed length, and how far they are apart."""
    own = lengths[(lengths["implementation"] == name) & (lengths["status"] == "ok")]
    measured = own["median_ms"].to_numpy()
    modelled = model.time(own["length"].to_numpy(dtype=float))
    return pd.DataFrame(
        {
            "implementation": name,
            "length": own["length"].to_numpy(),
            "seen_by_fit": own["length"].isin(fitted_lengths).to_numpy(),
            "measured_ms": measured,
            "modelled_ms": modelled,
            "residual_percent": 100 * (measured / modelled - 1),
        }
    )


def block_cost(samples: pd.DataFrame, chosen: Mapping[str, Any]) -> pd.DataFrame:
    """Fit a line to the time by number of blocks at one length: its slope is a block's cost."""
    row: dict[str, Any] = {"status": "not enough data: fewer than three block sizes"}
    if samples["block_size"].nunique() < 3:
        return pd.DataFrame([row])
    length = int(samples["length"].iloc[0])
    by_round = samples.pivot(index="round", columns="block_size", values="ms").dropna()
    blocks = np.ceil(length / by_round.columns.to_numpy(dtype=float))
    line = linregress(blocks, by_round.median().to_numpy())
    generator = np.random.default_rng(chosen["seed"])
    times = by_round.to_numpy()
    slopes = [
        linregress(
            blocks, np.median(times[generator.integers(len(times), size=len(times))], axis=0)
        ).slope
        for _ in range(chosen["resamples"])
    ]
    low, high = quantiles(np.array(slopes), (1 - chosen["confidence"]) / 2)
    return pd.DataFrame(
        [
            {
                "implementation": samples["implementation"].iloc[0],
                "length": length,
                "block_sizes": " ".join(str(int(size)) for size in by_round.columns),
                "ms_per_block": line.slope,
                "ci_low": low,
                "ci_high": high,
                "intercept_ms": line.intercept,
                "r_squared": line.rvalue**2,
                "status": "ok",
            }
        ]
    )


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("crossover", measure, __doc__)
