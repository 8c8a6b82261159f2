"""Each rule, from tables made for it, to each verdict it can give."""

from typing import Any

import pandas as pd
import pytest

from plots import tables
from plots.tables import gpu_memory
from tiled_attention.article import article
from tiled_attention.report import claims

Tables = dict[str, dict[str, pd.DataFrame]]


def verdict(rule: Any, tables: Tables) -> str:
    finding = rule(tables, article())
    assert finding.evidence
    assert "nan" not in finding.evidence
    return finding.verdict


def checks(passed: bool = True, bitwise: bool = False, implementation: str = "tiled") -> Tables:
    rows = [
        {
            "case": "article",
            "implementation": name,
            "seed": seed,
            "block_size": block_size,
            "max_abs_error": 3e-7,
            "passed": passed or name == "naive",
            "bitwise_equal": bitwise or name == "naive",
        }
        for name in ("naive", implementation)
        for seed in (0, 1)
        for block_size in (64, 32)
    ]
    return {"correctness": {"result": pd.DataFrame(rows)}}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (checks(bitwise=False), claims.PARTLY),
        (checks(bitwise=True), claims.REPRODUCED),
        (checks(passed=False), claims.CONTRADICTED),
        (checks(implementation="other"), claims.UNTESTABLE),
    ],
)
def test_same_mathematics(tables: Tables, expected: str) -> None:
    assert verdict(claims.same_mathematics, tables) == expected


def sizes(reduction: float = 8.0, length: int = 512, **peaks: float) -> Tables:
    check = pd.DataFrame([{"length": length, "block_size": 64, "reduction": reduction}])
    measured = [
        {"implementation": name, "length": 512, "measured_bytes": size, "status": "ok"}
        for name, size in peaks.items()
    ]
    columns = ["implementation", "length", "measured_bytes", "status"]
    return {
        "byte_arithmetic": {"check": check},
        "peak_memory": {"result": pd.DataFrame(measured, columns=columns)},
    }


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (sizes(naive=80, tiled=10), claims.REPRODUCED),
        (sizes(naive=28, tiled=10), claims.PARTLY),
        (sizes(), claims.REPRODUCED),
        (sizes(reduction=4.0, naive=80, tiled=10), claims.CONTRADICTED),
        (sizes(length=128), claims.UNTESTABLE),
    ],
)
def test_smaller_intermediate(tables: Tables, expected: str) -> None:
    assert verdict(claims.smaller_intermediate, tables) == expected


def production(**changed: Any) -> Tables:
    rows = []
    for length in (4096, 8192, 32768, 128192, 131072):
        naive, tiled = 128 * length**2, 128 * 128 * length
        rows.append(
            {
                "length": length,
                "naive_bytes": naive,
                "tiled_bytes": tiled,
                "reduction": naive / tiled,
            }
        )
    table = pd.DataFrame(rows)
    for column, value in changed.items():
        table.loc[0, column] = value
    devices = [{"device": "h100_80gb", "reading": "decimal", "memory_bytes": 80 * 10**9}]
    return {"byte_arithmetic": {"result": table, "devices": pd.DataFrame(devices)}}


def without(tables: Tables, length: int) -> Tables:
    kept = tables["byte_arithmetic"]["result"].query(f"length != {length}")
    return {"byte_arithmetic": tables["byte_arithmetic"] | {"result": kept}}


def test_production_sizes() -> None:
    rule = claims.production_sizes
    assert verdict(rule, production()) == claims.REPRODUCED
    assert "8 of 8 sizes" in rule(production(), article()).evidence
    assert verdict(rule, production(naive_bytes=2_160_000_000)) == claims.CONTRADICTED
    assert verdict(rule, without(production(), 8192)) == claims.UNTESTABLE


def peaks(naive: float = 2, tiled: float = 1, wide: float = 1.5, lengths: int = 3) -> Tables:
    rows = [
        {
            "implementation": name,
            "length": length,
            "block_size": block_size,
            "output_bytes": 7 * length,
            "measured_bytes": 7 * length + factor * length**exponent,
            "status": "ok",
        }
        for length in [512, 1024, 2048][:lengths]
        for name, block_size, exponent, factor in (
            ("naive", None, naive, 1),
            ("tiled", 64, tiled, 10),
            ("tiled_128", 128, tiled, 10 * wide),
        )
    ]
    return {"peak_memory": {"result": pd.DataFrame(rows)}}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (peaks(), claims.PARTLY),
        (peaks(wide=1.0), claims.REPRODUCED),
        (peaks(tiled=2), claims.CONTRADICTED),
        (peaks(naive=1), claims.CONTRADICTED),
        (peaks(lengths=1), claims.UNTESTABLE),
    ],
)
def test_memory_growth(tables: Tables, expected: str) -> None:
    assert verdict(claims.memory_growth, tables) == expected


def times(*ratios: float, width: float = 0.05, status: str = "ok") -> Tables:
    rows = [
        {
            "implementation": "tiled",
            "series": "lengths",
            "status": status,
            "length": length,
            "ratio_to_naive": ratio,
            "ratio_ci_low": ratio - width,
            "ratio_ci_high": ratio + width,
        }
        for length, ratio in zip((512, 1024, 2048), ratios, strict=False)
    ]
    return {"cpu_timing": {"result": pd.DataFrame(rows)}}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (times(1.63, 1.34, 1.10), claims.REPRODUCED),
        (times(1.34, 1.63, 1.10), claims.PARTLY),
        (times(1.63, 1.34, 1.01), claims.UNDECIDED),
        (times(1.3, 1.1, 0.9), claims.CONTRADICTED),
        (times(1.63, 1.34), claims.UNTESTABLE),
        (times(1.63, 1.34, 1.1, status="not timed: failed correctness"), claims.UNTESTABLE),
    ],
)
def test_slower_on_cpu(tables: Tables, expected: str) -> None:
    assert verdict(claims.slower_on_cpu, tables) == expected


def block_cost(low: float, high: float, r_squared: float, status: str = "ok") -> Tables:
    row = {
        "length": 1024,
        "block_sizes": "16 32 64",
        "ms_per_block": (low + high) / 2,
        "ci_low": low,
        "ci_high": high,
        "r_squared": r_squared,
        "status": status,
    }
    return {"crossover": {"block_cost": pd.DataFrame([row])}}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (block_cost(0.1, 0.2, 0.99), claims.REPRODUCED),
        (block_cost(0.1, 0.2, 0.5), claims.PARTLY),
        (block_cost(-0.1, 0.2, 0.99), claims.UNDECIDED),
        (block_cost(-0.2, -0.1, 0.99), claims.CONTRADICTED),
        (block_cost(0.1, 0.2, 0.99, status="not enough data"), claims.UNTESTABLE),
        ({"crossover": {}}, claims.UNTESTABLE),
    ],
)
def test_block_overhead(tables: Tables, expected: str) -> None:
    assert verdict(claims.block_overhead, tables) == expected


def test_fits_h100() -> None:
    rule = claims.fits_h100
    assert verdict(rule, production()) == claims.REPRODUCED
    assert verdict(rule, production(naive_bytes=40 * 10**9)) == claims.CONTRADICTED
    assert verdict(rule, without(production(), 4096)) == claims.UNTESTABLE


@pytest.mark.parametrize(("held", "expected"), [(1.5, claims.REPRODUCED), (2.5, claims.PARTLY)])
def test_fits_h100_as_measured(held: float, expected: str) -> None:
    measured = gpu_memory(held).assign(platform="h200")
    found = claims.fits_h100(production() | {"gpu_memory": {"result": measured}}, article())
    assert found.verdict == expected, found
    first = measured["first_length_out_of_memory"].iloc[-1]
    assert f"ran out at {first:,} on h200" in found.evidence


def test_context_length() -> None:
    assert verdict(claims.context_length, production()) == claims.CONTRADICTED
    same = dict(article()) | {"context_lengths": {"published": 131072, "power_of_two": 131072}}
    assert claims.context_length(production(), same).verdict == claims.REPRODUCED
    assert verdict(claims.context_length, without(production(), 131072)) == claims.UNTESTABLE


def planted(*passed: bool) -> Tables:
    rows = [
        {
            "mutant": f"fault {number // 2}",
            "dtype": "float32",
            "passed": value,
            "max_abs_error": 1e-3,
            "tolerance": 1e-6,
        }
        for number, value in enumerate(passed)
    ]
    columns = ["mutant", "dtype", "passed", "max_abs_error", "tolerance"]
    return {"gate_sensitivity": {"result": pd.DataFrame(rows, columns=columns)}}


def test_gate_catches() -> None:
    rule = claims.gate_catches
    assert verdict(rule, planted(False, True, False, False)) == claims.REPRODUCED
    assert verdict(rule, planted(False, True, True, True)) == claims.CONTRADICTED
    assert "it misses: fault 1" in rule(planted(False, True, True, True), article()).evidence
    assert verdict(rule, planted()) == claims.UNTESTABLE


@pytest.mark.parametrize("claim", ["C6", "C7", "C8"])
def test_claims_about_gpus_are_not_judged_without_one(claim: str) -> None:
    without = {"cpu_timing": {"result": tables.timing().assign(head_dim=64, causal=False)}}
    assert verdict(claims.RULES[claim], without) == claims.UNTESTABLE


def test_every_claim_of_the_article_has_a_rule() -> None:
    assert list(claims.RULES) == list(article()["claims"])
