"""`show` tells where a result came from, and its tables."""

import numpy as np

from tiled_attention.results.printing import dotted

TABLE = {
    "length": range(60),
    "ms": [np.nan, np.inf, 0.1 + 0.2] * 20,
    "status": ["ok", None, ""] * 20,
}


def test_provenance_in_short(put, run) -> None:
    put("aaaa1111", subject="tiled")
    lines = run("show", "aaaa1111").splitlines()
    assert lines[:10] == [
        "results/local/cpu_timing/aaaa1111",
        "  subject   tiled",
        "  measured  2026-01-01 00:00:00 to 2026-01-01 00:00:01 UTC",
        "  machine   cpu a CPU, cores 2",
        "  software  python 3.12.1",
        "  git       commit 0123456789abcdef, clean False",
        "  sources   1 files",
        "  reads     correctness/1111aaaa",
        "  cpu_timing.seed = 0",
        "  cpu_timing.lengths = [512]",
    ]


def test_the_first_rows_of_each_table(put, run) -> None:
    put("aaaa1111", tables={"result": TABLE, "samples": {"ms": [1.5]}, "none": {"ms": []}})
    lines = run("show", "aaaa1111", "--rows", "3").splitlines()
    tables = [line.split() for line in lines[lines.index("result.csv") :]]
    assert tables == [
        ["result.csv"],
        ["length", "ms", "status"],
        ["0", "-", "ok"],
        ["1", "inf", "-"],
        ["2", "0.3", "-"],
        ["...", "57", "more", "rows;", "--rows", "60", "shows", "them"],
        [],
        ["samples.csv"],
        ["ms"],
        ["1.5"],
        [],
        ["none.csv"],
        ["no", "rows"],
    ]
    assert len(run("show", "aaaa1111", "--rows", "60").splitlines()) == len(lines) + 56


def test_nested_options_have_dotted_names() -> None:
    nested = {"a": {"b": 1, "c": {}}, "d": [{"e": 1}]}
    assert dotted(nested) == {"a.b": 1, "a.c": {}, "d": [{"e": 1}]}
