"""The GPU's claims, to each verdict that they can get."""

from typing import Any

import pandas as pd
import pytest

from plots import tables
from tiled_attention.article import article
from tiled_attention.report import gpu_claims
from tiled_attention.report.claims import RULES


def evidence(
    gpu: dict[str, float] | None, cpu: dict[str, float] | None = None, spread: float = 0.01
) -> dict[str, Any]:
    """Tables in which each implementation takes that share of naive's time."""
    rows = [
        {"implementation": name, "series": "lengths", "length": 8192, "head_dim": 64,
         "causal": False, "status": "ok", "ratio_to_naive": ratio,
         "ratio_ci_low": ratio * (1 - spread), "ratio_ci_high": ratio * (1 + spread)}
        for name, ratio in (cpu or {"tiled": 1.1, "sdpa": 1.2}).items()
    ]  # fmt: skip
    found: dict[str, Any] = {"cpu_timing": {"result": pd.DataFrame(rows)}}
    if gpu is not None:
        result = tables.gpu_timing({"naive": 1.0, **gpu}).assign(platform="h200")
        result["ratio_ci_low"] = result["ratio_to_naive"] * (1 - spread)
        result["ratio_ci_high"] = result["ratio_to_naive"] * (1 + spread)
        found["gpu_timing"] = {"result": result}
    return found


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ((None,), "not testable here"),
        (({"triton_flash": 0.2},), "not testable here"),
        (({"triton_flash": 0.2, "tiled": 0.9},), "reproduced"),
        (({"triton_flash": 0.2, "tiled": 4.0},), "partly reproduced"),
        (({"triton_flash": 1.4, "tiled": 4.0},), "contradicted"),
        (({"triton_flash": 0.2, "tiled": 4.0}, {"tiled": 0.7, "sdpa": 0.2}), "contradicted"),
        (({"triton_flash": 0.2, "tiled": 4.0}, {"tiled": 1.7, "sdpa": 0.2}), "contradicted"),
        (({"triton_flash": 0.99, "tiled": 4.0}, {"tiled": 1.7}, 0.05), "undecided"),
    ],
)
def test_c6(given: tuple[Any, ...], verdict: str) -> None:
    found = gpu_claims.benefit_is_the_gpus(evidence(*given), article())
    assert found.verdict == verdict, found
    assert "nan" not in found.evidence


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(None, "not testable here"), (0.1, "reproduced"), (0.5, "contradicted"),
     (0.02, "contradicted")],
)  # fmt: skip
def test_c8(ratio: float | None, verdict: str) -> None:
    given = None if ratio is None else {"triton_flash": ratio}
    found = gpu_claims.gpu_speed_up(evidence(given), article())
    assert found.verdict == verdict, found
    if ratio:
        assert f"{1 / ratio:.1f} times" in found.evidence


def test_c8_where_some_shapes_are_within_and_others_not() -> None:
    tables_ = evidence({"triton_flash": 0.1})
    result = tables_["gpu_timing"]["result"]
    short = (result["length"] == 512) & (result["implementation"] == "triton_flash")
    for column in ("ratio_to_naive", "ratio_ci_low", "ratio_ci_high"):
        result.loc[short, column] *= 8
    found = gpu_claims.gpu_speed_up(tables_, article())
    assert found.verdict == "partly reproduced"
    assert "8 of 12 shapes" in found.evidence


@pytest.mark.parametrize(
    ("times", "verdict"),
    [(None, "not testable here"), (7.5, "contradicted"), (49.0, "contradicted"),
     (51.0, "reproduced"), (199.0, "reproduced"), (201.0, "contradicted")],
)  # fmt: skip
def test_c7(times: float | None, verdict: str) -> None:
    given: dict[str, Any] = {"cpu_bandwidth": {"result": tables.cpu_bandwidth()}}
    if times:
        rates = tables.gpu_bandwidth(shared=4_000.0 * times, hbm=4_000.0)
        given["gpu_bandwidth"] = {"result": rates.assign(platform="h200")}
    found = RULES["C7"](given, article())
    assert found.verdict == verdict, found
    if times:
        assert f"{times:.1f} [" in found.evidence
        assert "first cache is 20.0 times" in found.evidence
