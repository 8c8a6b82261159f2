"""Every planted fault is rejected, by a margin that the table shows."""

import pandas as pd
import pytest

from tiled_attention.mutants import MUTANTS
from tiled_attention.steps import gate_sensitivity


@pytest.fixture(scope="module")
def result() -> pd.DataFrame:
    chosen = {"dtypes": ["float32", "bfloat16"], "seeds": [0]}
    return gate_sensitivity.measure({"gate_sensitivity": chosen}, {})["result"]


def test_every_mutant_runs_in_every_dtype_and_case(result: pd.DataFrame) -> None:
    columns = ["mutant", "dtype", "seed", "case"]
    assert len(result) == len(result[columns].drop_duplicates())
    assert len(result) == len(MUTANTS) * 2 * len(gate_sensitivity.CASES)
    assert set(result["fault"]) == {mutant.fault for mutant in MUTANTS}
    assert (result["status"] == "ok").all()


def test_every_mutant_is_rejected_in_every_dtype(result: pd.DataFrame) -> None:
    rejected = ~result["passed"]
    assert rejected.groupby([result["mutant"], result["dtype"]]).any().all()
    margin = result["max_abs_error"] / result["tolerance"]
    assert (margin[rejected] > 1).all()
    assert (margin[~rejected] <= 1).all()


def test_fault_shows_only_where_it_matters(result: pd.DataFrame) -> None:
    """A wrong causal mask is right where nothing is masked, so the gate does not cry wolf."""
    masks = result[result["mutant"] == "wrong causal mask"].set_index(["dtype", "case"])["passed"]
    for dtype in ("float32", "bfloat16"):
        assert masks[dtype, "not causal"]
        assert not masks[dtype, "causal"]


def test_usual_tolerance_lets_the_dropped_precision_through(result: pd.DataFrame) -> None:
    row = result.query("mutant == 'dropped precision' and dtype == 'float32'").iloc[0]
    assert row["max_abs_difference"] < 1e-2
    assert not row["passed"]
