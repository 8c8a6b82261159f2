"""A result is written whole or not at all, and read only if undamaged."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiled_attention import store

RECORD = {"step": "x", "subject": None}
TABLE = pd.DataFrame({"implementation": ["naive"], "median_ms": [1.5]})
WRITE_FOR_EVER = """
import sys
from pathlib import Path
import pandas as pd
from tiled_attention import store
table = pd.DataFrame({"ms": range(20000)})
print("ready", flush=True)
for number in range(10**6):
    store.write(Path(sys.argv[1]) / f"v{number}", {"result": table, "samples": table}, {})
"""


def test_written_and_read(tmp_path: Path) -> None:
    stored = store.write(tmp_path / "p" / "step" / "v", {"result": TABLE}, RECORD)
    assert store.exists(stored.folder)
    pd.testing.assert_frame_equal(stored.table(), TABLE)
    assert (stored.platform, stored.step, stored.version) == ("p", "step", "v")
    assert [it.name for it in stored.folder.parent.iterdir()] == ["v"]
    assert list(store.stored_results(tmp_path)) == [stored]


TEXTS = ["00123", "123e456", "695e0514", "NA", "nan", "1e5", "1_0", "true", "with, comma", 'a "b"']
TEXTS += ["carriage\rreturn", "two\nlines", "both\r\nends", " spaces ", "\u00e9\u4e2d"]


def test_text_is_kept_byte_for_byte(tmp_path: Path) -> None:
    table = pd.DataFrame({"any": TEXTS, "number": range(len(TEXTS))})
    stored = store.write(tmp_path / "v", {"result": table}, RECORD)
    assert list(stored.table()["any"]) == TEXTS
    assert list(stored.table()["number"]) == list(range(len(TEXTS)))


def test_text_that_looks_like_numbers_stays_text(tmp_path: Path) -> None:
    table = pd.DataFrame({"version": ["001", "1e5"], "missing": ["7", None], "none": [None] * 2})
    read = store.write(tmp_path / "v", {"result": table}, RECORD).table()
    assert list(read["version"]) == ["001", "1e5"]
    assert read["missing"][0] == "7"
    assert read["missing"].isna().tolist() == [False, True]
    assert read["none"].isna().all()


def test_a_table_without_columns_is_empty_when_read(tmp_path: Path) -> None:
    stored = store.write(tmp_path / "v", {"result": TABLE, "account": pd.DataFrame([])}, RECORD)
    assert stored.tables()["account"].empty


@given(st.lists(st.floats(allow_nan=False, width=64), min_size=1))
def test_floats_are_kept_exactly(tmp_path_factory: pytest.TempPathFactory, values: list) -> None:
    folder = tmp_path_factory.mktemp("store") / "v"
    stored = store.write(folder, {"result": pd.DataFrame({"ms": values, "of": "x"})}, RECORD)
    assert [float(value) for value in stored.table()["ms"]] == values


def test_floats_of_any_bits_are_kept_exactly(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 2**63, 20_000)
    values = bits.view(np.float64)[np.isfinite(bits.view(np.float64))]
    stored = store.write(tmp_path / "v", {"result": pd.DataFrame({"ms": values})}, RECORD)
    assert np.array_equal(stored.table()["ms"], values)


def test_whole_numbers_are_kept_exactly(tmp_path: Path) -> None:
    table = pd.DataFrame({"bytes": [0, 2**53 + 1, 2**63 - 1]})
    stored = store.write(tmp_path / "v", {"result": table}, RECORD)
    assert list(stored.table()["bytes"]) == [0, 2**53 + 1, 2**63 - 1]


def test_missing_and_infinite_numbers(tmp_path: Path) -> None:
    table = pd.DataFrame({"ms": [1.0, np.nan, np.inf], "status": ["ok", "skipped: a", "ok"]})
    stored = store.write(tmp_path / "v", {"result": table}, RECORD)
    pd.testing.assert_frame_equal(stored.table(), table)


def test_the_second_writer_keeps_the_first(tmp_path: Path) -> None:
    store.write(tmp_path / "v", {"result": TABLE}, RECORD)
    again = store.write(tmp_path / "v", {"result": TABLE.assign(median_ms=9.0)}, RECORD)
    assert again.table()["median_ms"].item() == 1.5
    assert [it.name for it in tmp_path.iterdir()] == ["v"]


@pytest.mark.parametrize("left", [[], ["result.csv"], ["result.csv", "samples.csv"]])
def test_what_is_left_of_a_lost_result_is_replaced(tmp_path: Path, left: list[str]) -> None:
    folder = tmp_path / "v"
    folder.mkdir()
    for name in left:
        (folder / name).write_text("old\n")
    stored = store.write(folder, {"result": TABLE}, RECORD)
    pd.testing.assert_frame_equal(stored.table(), TABLE)
    assert sorted(it.name for it in folder.iterdir()) == ["provenance.json", "result.csv"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "result.csv").write_text("a\n1\n"), "result.csv is damaged"),
        (lambda folder: os.truncate(folder / "result.csv", 9), "result.csv is damaged"),
        (lambda folder: (folder / "result.csv").unlink(), "result.csv cannot be read"),
        (lambda folder: (folder / "provenance.json").write_text("{"), "provenance.json cannot"),
        (lambda folder: (folder / "provenance.json").unlink(), "provenance.json cannot be read"),
        (lambda folder: (folder / "provenance.json").write_text("[]"), "it names no files"),
        (lambda folder: (folder / "provenance.json").write_text("{}"), "it names no files"),
        (lambda folder: (folder / "provenance.json").write_text('{"files": 3}'), "no files"),
    ],
)
def test_damage_is_named_in_one_line(tmp_path: Path, damage: object, message: str) -> None:
    stored = store.write(tmp_path / "v", {"result": TABLE}, RECORD)
    damage(stored.folder)  # type: ignore[operator]
    with pytest.raises(store.StoreError, match=message) as caught:
        store.Stored(stored.folder).table()
    assert "\n" not in str(caught.value)


def test_killed_writers_leave_nothing_half_written(tmp_path: Path) -> None:
    generator = random.Random(0)
    begun = time.perf_counter()
    table = pd.DataFrame({"ms": range(20000)})
    store.write(tmp_path / "first", {"result": table, "samples": table}, {})
    one_write = time.perf_counter() - begun
    for number in range(10):
        folder = tmp_path / str(number)
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE_FOR_EVER, str(folder)],
            env=os.environ | {"PYTHONPATH": str(store.ROOT / "src")},
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(one_write * generator.uniform(0.0, 4.0))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        for written in folder.glob("[!.]*"):
            assert store.exists(written)
            assert len(store.Stored(written).table("samples")) == 20000
    assert len(list(tmp_path.glob("*/[!.]*"))) > 3
    assert list(tmp_path.glob("*/.*")), "no writer was killed in the middle"


WRITE_ONE = """
import sys
from pathlib import Path
import pandas as pd
from tiled_attention import store
number = int(sys.argv[2])
tables = dict.fromkeys(["result", "samples"], pd.DataFrame({"ms": [number] * 50000}))
print("ready", flush=True)
sys.stdin.readline()
store.write(Path(sys.argv[1]), tables, {"subject": sys.argv[2]})
"""


def test_of_writers_at_once_one_is_kept_whole(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE_ONE, str(tmp_path / "v"), str(number)],
            env=os.environ | {"PYTHONPATH": str(store.ROOT / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 4
    stored = store.Stored(tmp_path / "v")
    numbers = {name: set(table["ms"]) for name, table in stored.tables().items()}
    number = int(stored.provenance["subject"])
    assert numbers == {"result": {number}, "samples": {number}}
    assert [it.name for it in tmp_path.iterdir()] == ["v"]


NOBODY = 65534


def test_a_read_only_place_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    child = os.fork()
    if child == 0:  # root may write anywhere, so as nobody
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(NOBODY)
            store.write(tmp_path / "step" / "v", {"result": TABLE}, RECORD)
        except store.StoreError as error:
            code = 0 if str(error) == "cannot write v (Permission denied)" else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tmp_path.chmod(0o755)
    assert list(tmp_path.iterdir()) == []


def test_unwritable_place_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(store.StoreError, match="cannot write") as caught:
        store.write(tmp_path / "file" / "step" / "v", {"result": TABLE}, RECORD)
    assert "\n" not in str(caught.value)
    with pytest.raises(store.StoreError, match="cannot write"):
        store.write_text(tmp_path / "file" / "report.md", "text")


def test_a_text_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "report.md"
    store.write_text(path, "one")
    store.write_text(path, "two")
    assert path.read_text() == "two"
    assert [it.name for it in path.parent.iterdir()] == ["report.md"]


def test_identity_follows_the_numbers(tmp_path: Path) -> None:
    one = store.write(tmp_path / "a" / "v", {"result": TABLE}, RECORD | {"ended": "1"})
    same = store.write(tmp_path / "b" / "a" / "v", {"result": TABLE}, RECORD | {"ended": "2"})
    other = store.write(tmp_path / "c" / "a" / "v", {"result": TABLE * 2}, RECORD)
    assert one.identity == same.identity != other.identity
    assert json.loads(one.identity)[1] == "v"
