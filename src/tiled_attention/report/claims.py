"""The rules that judge the article's claims, one function each, from result tables alone.

A rule returns one of five verdicts and the sentence that it rests on. Nothing here is typed in:
every number comes from a table of this run, or is the article's own, from article.yaml.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from tiled_attention.report.finding import (
    CONTRADICTED,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    UNTESTABLE,
    Finding,
)
from tiled_attention.report.gpu_claims import benefit_is_the_gpus, gpu_speed_up, memory_ratio

Tables = Mapping[str, Mapping[str, pd.DataFrame]]
Article = Mapping[str, Any]

TILED, NAIVE = "tiled", "naive"
LINEAR_FIT = 0.9  # R^2 from which time is called linear in the number of blocks
SAME_SIZE = 0.05  # relative difference under which two measured sizes are the same
SAME_EXPONENT = 0.1  # difference under which two growth exponents are the same


def same_mathematics(tables: Tables, article: Article) -> Finding:
    """C1: within what rounding allows (the gate), and equal bit for bit?"""
    checks = tables["correctness"]["result"].query("case == 'article'")
    tiled = checks[checks["implementation"] == TILED]
    naive = checks[checks["implementation"] == NAIVE]
    if tiled.empty or tiled["max_abs_error"].isna().any() or naive.empty:
        return Finding(UNTESTABLE, "no judged output of tiled and naive in the article's check")
    bitwise = tiled["bitwise_equal"].astype(str).eq("True")
    sentence = (
        f"Over {len(tiled)} outputs ({tiled['seed'].nunique()} seeds, "
        f"{tiled['block_size'].nunique()} block sizes) tiled errs at most "
        f"{tiled['max_abs_error'].max():.2e} against FP64 and naive "
        f"{naive['max_abs_error'].max():.2e}; {int(bitwise.sum())} of {len(tiled)} outputs "
        "equal naive's bit for bit."
    )
    if not tiled["passed"].eq(True).all():
        return Finding(CONTRADICTED, f"{sentence} More than rounding allows.")
    if bitwise.all():
        return Finding(REPRODUCED, sentence)
    return Finding(PARTLY, f"{sentence} Rounding noise, so 'the same mathematics' holds.")


def smaller_intermediate(tables: Tables, article: Article) -> Finding:
    """C2: the exact ratio of the counted tensors, and the measured ratio of all live ones."""
    published = article["correctness"]
    check = tables["byte_arithmetic"]["check"].query(
        f"length == {published['length']} and block_size == {published['block_size']}"
    )
    peak = _peaks(tables, published["length"])
    if check.empty:
        return Finding(UNTESTABLE, "the article's length and block are not among those counted")
    counted = float(check["reduction"].iloc[0])
    sentence = f"The counted tensors differ by {counted:.1f}x"
    if counted != published["reduction"]:
        return Finding(CONTRADICTED, f"{sentence}, not {published['reduction']:.1f}x.")
    if not {TILED, NAIVE} <= set(peak):
        return Finding(REPRODUCED, f"{sentence}; all live tensors were not measured.")
    measured = peak[NAIVE] / peak[TILED]
    sentence += f"; the measured peaks of all live tensors by {measured:.1f}x"
    if abs(measured / counted - 1) <= SAME_SIZE:
        return Finding(REPRODUCED, f"{sentence}.")
    return Finding(PARTLY, f"{sentence}, since both hold more than the one tensor.")


def production_sizes(tables: Tables, article: Article) -> Finding:
    """C3: exact integers, rounded as the article rounds them."""
    counted = tables["byte_arithmetic"]["result"].set_index("length")
    published = pd.DataFrame(article["sizes"]).set_index("length")
    missing = published.index.difference(counted.index)
    if len(missing):
        return Finding(UNTESTABLE, f"not counted: length {', '.join(map(str, missing))}")
    counted = counted.loc[published.index]
    naive_same = (counted["naive_bytes"] / 1e9).round(2).eq(published["naive_gb"])
    tiled_same = (counted["tiled_bytes"] / 1e6).round(2).eq(published["tiled_mb"])
    thousand = float(counted["reduction"].loc[article["thousandfold_length"]])
    equal = int(naive_same.sum() + tiled_same.sum())
    sentence = (
        f"{equal} of {2 * len(published)} sizes are equal to the published digit; the reduction "
        f"at {article['thousandfold_length']:,} is {thousand:,.1f}x."
    )
    right = naive_same.all() and tiled_same.all() and thousand >= 1000
    return Finding(REPRODUCED if right else CONTRADICTED, sentence)


def memory_growth(tables: Tables, article: Article) -> Finding:
    """C4: how the measured peaks grow beyond the output, and whether the block matters."""
    measured = tables["peak_memory"]["result"].query("status == 'ok'")
    measured = measured.assign(beyond=measured["measured_bytes"] - measured["output_bytes"])
    exponents = {
        name: growth_exponent(own["length"], own["beyond"])
        for name, own in measured.groupby("implementation")
    }
    if not np.isfinite([exponents.get(name, np.nan) for name in (NAIVE, TILED)]).all():
        return Finding(UNTESTABLE, "fewer than two measured lengths of naive and tiled")
    sentence = (
        f"Beyond the output, measured peaks grow as S^{exponents[NAIVE]:.2f} (naive) and "
        f"S^{exponents[TILED]:.2f} (tiled)"
    )
    quadratic = abs(exponents[NAIVE] - 2) <= SAME_EXPONENT
    linear = abs(exponents[TILED] - 1) <= SAME_EXPONENT
    if not (quadratic and linear):
        return Finding(CONTRADICTED, f"{sentence}.")
    blocks = measured[measured["implementation"].str.startswith(TILED)]
    last = blocks[blocks["length"] == blocks["length"].max()].set_index("block_size")
    sizes = last["beyond"]
    if len(sizes) > 1 and sizes.max() / sizes.min() > 1 + SAME_SIZE:
        small, large = sizes.idxmin(), sizes.idxmax()
        return Finding(
            PARTLY,
            f"{sentence}, but what is held is S x block beside S x d: at the same d, block "
            f"{large:.0f} holds {sizes[large] / sizes[small]:.2f}x as much as block {small:.0f}.",
        )
    return Finding(REPRODUCED, f"{sentence}.")


def slower_on_cpu(tables: Tables, article: Article) -> Finding:
    """C5: the paired ratio at the article's lengths, with its interval."""
    lengths = [row["length"] for row in article["timing"]]
    rows = timed(tables, TILED)
    rows = rows[rows["length"].isin(lengths)].sort_values("length")
    if len(rows) < len(lengths):
        return Finding(UNTESTABLE, "tiled was not timed at all of the article's lengths")
    sentence = "Ratios to naive: " + ", ".join(
        f"{row.ratio_to_naive:.2f} [{row.ratio_ci_low:.2f}, {row.ratio_ci_high:.2f}] "
        f"at {row.length}"
        for row in rows.itertuples()
    )
    closing = bool((rows["ratio_to_naive"].diff().dropna() < 0).all())
    gap = "the gap closes" if closing else "the gap does not close steadily"
    if (rows["ratio_ci_high"] < 1).any():
        faster = ", ".join(map(str, rows.loc[rows["ratio_ci_high"] < 1, "length"]))
        return Finding(CONTRADICTED, f"{sentence}: tiled is faster at {faster}.")
    if (rows["ratio_ci_low"] > 1).all():
        return Finding(REPRODUCED if closing else PARTLY, f"{sentence}: slower, {gap}.")
    return Finding(UNDECIDED, f"{sentence}: an interval spans 1; {gap}.")


def block_overhead(tables: Tables, article: Article) -> Finding:
    """C9: the slope of time against the number of blocks at one length, and its R^2."""
    fitted = tables["crossover"].get("block_cost", pd.DataFrame())
    if fitted.empty or fitted["status"].iloc[0] != "ok":
        return Finding(UNTESTABLE, "fewer than three block sizes were timed")
    row = fitted.iloc[0]
    sentence = (
        f"At S = {row['length']} with blocks of {row['block_sizes'].replace(' ', ', ')} keys, one "
        f"more block costs {1e3 * row['ms_per_block']:.0f} us "
        f"[{1e3 * row['ci_low']:.0f}, {1e3 * row['ci_high']:.0f}], R^2 = {row['r_squared']:.2f}."
    )
    if row["ci_low"] > 0:
        linear = row["r_squared"] >= LINEAR_FIT
        note = "" if linear else " It adds, but not linearly: wide blocks cost time of their own."
        return Finding(REPRODUCED if linear else PARTLY, sentence + note)
    if row["ci_high"] < 0:
        return Finding(CONTRADICTED, sentence)
    return Finding(UNDECIDED, sentence)


def fits_h100(tables: Tables, article: Article) -> Finding:
    """C10: the share of a device's memory that naive's scores take, counted and as measured."""
    h100 = article["h100"]
    counted = tables["byte_arithmetic"]["result"].set_index("length")["naive_bytes"]
    devices = tables["byte_arithmetic"]["devices"].query(
        f"device == '{h100['device']}' and reading == 'decimal'"
    )
    if devices.empty or not {h100["fits"], h100["exceeds"]} <= set(counted.index):
        return Finding(UNTESTABLE, "the device or the lengths are not among those counted")
    memory = int(devices["memory_bytes"].iloc[0])
    small, large = counted[h100["fits"]] / memory, counted[h100["exceeds"]] / memory
    sentence = (
        f"The scores take {small:.1%} of the memory at {h100['fits']:,} and {large:.0%} at "
        f"{h100['exceeds']:,}, by arithmetic"
    )
    if not (small <= h100["negligible_share"] and large > 1):
        return Finding(CONTRADICTED, f"{sentence}.")
    found = tables.get("gpu_memory", {}).get("result", pd.DataFrame())
    if found.empty:
        return Finding(REPRODUCED, f"{sentence}; where naive really runs out needs a GPU.")
    row = found.sort_values("heads").iloc[-1]
    held = row["peak_bytes"] / row["score_matrix_bytes"]
    sentence += (
        f". Really, naive ran out at {row['first_length_out_of_memory']:,} on "
        f"{row['platform']} ({row['memory_bytes'] / 1e9:.0f} GB, {row['heads']} heads), holding "
        f"{held:.2f} such tensors: {held * small:.1%} of the H100 at {h100['fits']:,}"
    )
    if held * small <= h100["negligible_share"]:
        return Finding(REPRODUCED, f"{sentence}.")
    return Finding(PARTLY, f"{sentence}, more than the {h100['negligible_share']:.0%} meant here.")


def context_length(tables: Tables, article: Article) -> Finding:
    """C11: is the published length 128K tokens, and what does the arithmetic give at both?"""
    published, power = article["context_lengths"].values()
    reduction = tables["byte_arithmetic"]["result"].set_index("length")["reduction"]
    if not {published, power} <= set(reduction.index):
        return Finding(UNTESTABLE, "both lengths must be counted")
    sentence = (
        f"128K tokens is 128 x 1024 = {power:,}, which is {power - published:,} more than "
        f"{published:,}; the arithmetic holds at both, with reductions of "
        f"{reduction[published]:,.1f}x and {reduction[power]:,.1f}x."
    )
    return Finding(REPRODUCED if published == power else CONTRADICTED, sentence)


def gate_catches(tables: Tables, article: Article) -> Finding:
    """C12: every planted fault is rejected, in every dtype."""
    judged = tables["gate_sensitivity"]["result"]
    rejected = judged.groupby(["mutant", "dtype"])["passed"].agg(lambda own: own.eq(False).any())
    by_mutant = rejected.groupby("mutant").all()
    if by_mutant.empty:
        return Finding(UNTESTABLE, "no fault was planted")
    sentence = f"The gate rejects {int(by_mutant.sum())} of {len(by_mutant)} planted faults"
    if by_mutant.all():
        margins = (judged["max_abs_error"] / judged["tolerance"]).groupby(judged["mutant"]).max()
        return Finding(
            REPRODUCED,
            f"{sentence}; the nearest, {margins.idxmin()}, at {margins.min():,.0f} times the "
            "tolerance.",
        )
    missed = ", ".join(by_mutant[~by_mutant].index)
    return Finding(CONTRADICTED, f"{sentence}; it misses: {missed}.")


RULES: dict[str, Callable[[Tables, Article], Finding]] = {
    "C1": same_mathematics,
    "C2": smaller_intermediate,
    "C3": production_sizes,
    "C4": memory_growth,
    "C5": slower_on_cpu,
    "C6": benefit_is_the_gpus,
    "C7": memory_ratio,
    "C8": gpu_speed_up,
    "C9": block_overhead,
    "C10": fits_h100,
    "C11": context_length,
    "C12": gate_catches,
}


def timed(tables: Tables, implementation: str) -> pd.DataFrame:
    """Return the timed lengths of one implementation."""
    rows = tables["cpu_timing"]["result"]
    return rows[
        (rows["implementation"] == implementation)
        & (rows["series"] == "lengths")
        & (rows["status"] == "ok")
    ]


def growth_exponent(lengths: pd.Series, sizes: pd.Series) -> float:
    """Return the slope of log(size) by log(length); NaN for fewer than two lengths."""
    if lengths.nunique() < 2:
        return float("nan")
    return float(np.polyfit(np.log(lengths), np.log(sizes.astype(float)), 1)[0])


def _peaks(tables: Tables, length: int) -> dict[str, float]:
    measured = tables["peak_memory"]["result"].query(f"length == {length} and status == 'ok'")
    return dict(zip(measured["implementation"], measured["measured_bytes"], strict=True))
