"""`diff` names whatever differs between two results of a step."""

TIMES = {"implementation": ["naive", "tiled"], "length": 512, "median_ms": [1.0, 3.0]}


def test_every_difference_is_named(put, run) -> None:
    put("aaaa1111", sources={"x.py": "aaaaaaaaaa1", "y.py": "same", "z.py": "f" * 64})
    put(
        "bbbb2222",
        tables={"result": TIMES},
        options={"cpu_timing": {"lengths": [512, 1024]}, "new": {"a": None}},
        reads=["correctness/2222bbbb"],
        machine={"cpu": "another", "cores": 2},
        software={"python": "3.12.1", "triton": "3.7.1"},
        sources={"x.py": "bbbbbbbbbb1", "y.py": "same", "w.py": "e" * 64},
    )
    lines = run("diff", "aaaa1111", "bbbb2222").splitlines()
    assert lines[:20] == [
        "A  local/cpu_timing/aaaa1111  2026-01-01 00:00:01 UTC",
        "B  local/cpu_timing/bbbb2222  2026-01-01 00:00:01 UTC",
        "sources:",
        "  changed  x.py aaaaaaaaaa -> bbbbbbbbbb",
        "  removed  z.py ffffffffff",
        "  added    w.py eeeeeeeeee",
        "options:",
        "  removed  cpu_timing.seed 0",
        "  changed  cpu_timing.lengths [512] -> [512, 1024]",
        "  added    new.a null",
        "reads:",
        "  removed  correctness/1111aaaa",
        "  added    correctness/2222bbbb",
        "machine:",
        '  changed  cpu "a CPU" -> "another"',
        "software:",
        '  changed  triton null -> "3.7.1"',
        "",
        "result.csv",
        "1 of 2 rows are the same",
    ]
    assert [" ".join(line.split()) for line in lines[20:22]] == [
        "implementation length median_ms A median_ms B median_ms B/A",
        "tiled 512 2 3 1.5",
    ]
    assert "it is no proof" in lines[-1]


def test_hashes_that_begin_alike_differ(put, run) -> None:
    put("aaaa1111", sources={"x.py": "a" * 63 + "1"})
    put("bbbb2222", sources={"x.py": "a" * 63 + "2"})
    assert "  changed  x.py aaaaaaaaaa -> aaaaaaaaaa" in run("diff", "aaaa1111", "bbbb2222")


def test_only_timings_are_called_no_proof(put, run) -> None:
    for version, size in (("aaaa1111", 1), ("bbbb2222", 2)):
        table = {"length": [512], "naive_bytes": [size]}
        put(version, step="byte_arithmetic", tables={"result": table})
    said = run("diff", "aaaa1111", "bbbb2222")
    assert said.splitlines()[-1].split() == ["512", "1", "2"]
    assert "no proof" not in said


def test_one_version_on_two_platforms(put, run) -> None:
    put("aaaa1111")
    put("aaaa1111", platform="named", tables={"result": TIMES})
    assert "ambiguous" in run("diff", "aaaa1111", "aaaa1111", code=2)
    said = run("diff", "local/aaaa", "named/aaaa")
    assert said.splitlines()[2:5] == ["sources: the same", "options: the same", "reads: the same"]
    assert "1.5" in said


def test_samples_and_tables_of_only_one(put, run) -> None:
    table = {"length": [1], "ms": [1.0]}
    for version, own in (("aaaa1111", "a"), ("bbbb2222", "b")):
        put(version, step="crossover", tables=dict.fromkeys(("samples", own), table))
    said = run("diff", "aaaa1111", "bbbb2222")
    assert "samples.csv\nnot compared" in said
    assert "a.csv\nonly in A" in said
    assert "b.csv\nonly in B" in said


def test_kernels_are_compared_row_by_row(put, run) -> None:
    for version, name in (("aaaa1111", "naive"), ("bbbb2222", "tiled")):
        table = {"implementation": [name], "seed": [3], "max_abs_error": [1e-7]}
        put(version, step="correctness", subject=name, tables={"result": table})
    header, row = run("diff", "aaaa1111", "bbbb2222").splitlines()[-2:]
    assert header.split() == ["seed", "implementation", "A", "implementation", "B"]
    assert row.split() == ["3", "naive", "tiled"]


def test_two_steps_are_not_compared(put, run) -> None:
    put("aaaa1111")
    put("bbbb2222", step="crossover")
    said = run("diff", "aaaa1111", "bbbb2222", code=2)
    assert "aaaa1111 is of cpu_timing, bbbb2222 of crossover" in said
