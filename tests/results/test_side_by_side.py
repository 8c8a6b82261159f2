"""Rows of two tables, joined on what they are about."""

import numpy as np
import pandas as pd
import pytest

from tiled_attention.results.printing import table_text
from tiled_attention.results.side_by_side import RATIO, side_by_side


def test_rows_of_only_one_table_are_told_from_missing_values() -> None:
    one = pd.DataFrame({"implementation": ["naive", "tiled"], "median_ms": [2.0, np.nan]})
    other = pd.DataFrame({"implementation": ["sdpa", "tiled"], "median_ms": [1.0, 6.0]})
    rows = side_by_side(one, other).rows.set_index("implementation")
    assert rows["in"].to_dict() == {"naive": "A", "tiled": "both", "sdpa": "B"}
    assert rows[RATIO].isna().all()
    assert rows["median_ms B"].dropna().to_dict() == {"tiled": 6.0, "sdpa": 1.0}


def test_rows_without_a_block_size_are_paired() -> None:
    table = {"implementation": ["naive", "tiled"], "block_size": [np.nan, 64], "ms": [1.0, 2.0]}
    one = pd.DataFrame(table)
    rows = side_by_side(one, one.assign(ms=[3.0, 4.0])).rows
    assert rows[["ms A", "ms B"]].to_numpy().tolist() == [[1.0, 3.0], [2.0, 4.0]]


def test_rows_of_one_key_are_paired_in_their_order() -> None:
    table = {"implementation": "naive", "block_size": np.nan, "ms": [1.0, 2.0, 3.0]}
    one = pd.DataFrame(table)
    rows = side_by_side(one, one.assign(ms=[4.0, 5.0, 6.0])).rows
    assert rows[["ms A", "ms B"]].to_numpy().tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [(2.0, 3.0, 1.5), (np.inf, 1.0, 0.0), (1.0, np.inf, np.inf), (0.0, 1.0, np.inf)],
)
def test_ratio_is_of_b_to_a(a: float, b: float, ratio: float) -> None:
    one, other = (pd.DataFrame({"length": [512], "median_ms": [value]}) for value in (a, b))
    assert side_by_side(one, other).rows[RATIO].tolist() == [ratio]


@pytest.mark.parametrize("value", [np.nan, np.inf, "text", True, 3])
def test_equal_values_do_not_differ(value: object) -> None:
    table = pd.DataFrame({"implementation": ["a", "b"], "length": [1, 1], "found": [value, 7]})
    joined = side_by_side(table, table.copy())
    assert joined.notes == ["2 of 2 rows are the same"]
    assert len(joined.rows) == 0


def test_what_all_rows_share_is_said_once() -> None:
    one = pd.DataFrame(
        {
            "dtype": "float32",
            "length": [1, 2, 3],
            "batch": 2,
            "ms": [1.0, 2.0, 3.0],
            "status": "ok",
        }
    )
    joined = side_by_side(one, one.assign(ms=[1.0, 4.0, 5.0]))
    assert list(joined.rows.columns) == ["length", "ms A", "ms B"]
    assert joined.rows.to_numpy().tolist() == [[2, 2.0, 4.0], [3, 3.0, 5.0]]
    assert joined.notes == [
        "1 of 3 rows are the same",
        "in every row below: dtype float32, batch 2",
        "the same in A and B: status",
    ]


@pytest.mark.parametrize(
    ("one", "other", "rows"),
    [
        ({"case": ["a"], "ms": [1.0]}, {"case": [np.nan], "ms": [1.0]}, 2),
        ({"block_size": [64], "ms": [1.0]}, {"block_size": ["64"], "ms": [2.0]}, 1),
        ({"causal": [True], "ms": [1.0]}, {"causal": ["x"], "ms": [1.0]}, 2),
        ({"ms": [1.0]}, {"ms": ["text"]}, 1),
        ({"ms": [1.0]}, {"other": [1.0]}, 1),
        ({"length": [], "ms": []}, {"length": [1], "ms": [1.0]}, 1),
        ({"length": [], "ms": []}, {"length": [], "ms": []}, 0),
        ({"length": [1, 1], "ms": [1.0, 2.0]}, {"length": [1], "ms": [2.0]}, 2),
        ({"length": [2, 1], "ms": [1.0, 2.0]}, {"length": [1], "ms": [np.inf]}, 2),
    ],
)
def test_tables_of_other_types_and_columns(one: dict, other: dict, rows: int) -> None:
    joined = side_by_side(pd.DataFrame(one), pd.DataFrame(other))
    assert len(joined.rows) == rows
    assert table_text(joined.rows)
