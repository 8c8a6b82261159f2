"""What a report draws on: planned results put together, others' beside it."""

from pathlib import Path

import pandas as pd
import pytest

from tiled_attention import plan as planning
from tiled_attention.evidence import Evidence
from tiled_attention.pipeline import MEASURED
from tiled_attention.plan import Plan, make_plan
from tiled_attention.store import StoreError, write


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(planning, "RESULTS", tmp_path)
    return tmp_path


def complete(plan: Plan) -> None:
    """Write every planned result: one row that names its version."""
    for planned in plan.all_results():
        table = pd.DataFrame({"version": [planned.version], "ms": [1.5]})
        tables = {"result": table, "more": table} if planned.step == "peak_memory" else {}
        record = {"step": planned.step, "ended": "2026-01-01T00:00:00+00:00"}
        write(planned.folder, {"result": table} | tables, record)


def test_results_of_all_implementations_are_put_together(results: Path) -> None:
    plan = make_plan(["gpu=cuda"])
    complete(plan)
    tables = Evidence(plan).tables
    assert list(tables) == list(MEASURED)
    for step in MEASURED:
        versions = [planned.version for planned in plan.results[step]]
        assert list(tables[step]["result"]["version"]) == versions
    assert len(plan.results["correctness"]) > 1
    assert set(tables["peak_memory"]) == {"result", "more"}
    assert list(tables["correctness"]["result"].index) == list(range(len(versions_of(plan))))


def versions_of(plan: Plan) -> list[str]:
    return [planned.version for planned in plan.results["correctness"]]


def test_a_missing_result_is_named(results: Path) -> None:
    plan = make_plan([])
    complete(plan)
    lost = plan.results["crossover"][0].folder
    (lost / "provenance.json").unlink()
    with pytest.raises(StoreError, match="is not there") as caught:
        _ = Evidence(plan).tables
    assert lost.name in str(caught.value)


def test_a_damaged_result_is_named(results: Path) -> None:
    plan = make_plan([])
    complete(plan)
    damaged = plan.results["cpu_timing"][0].folder / "result.csv"
    damaged.write_text("version,ms\nx,1.0\n")
    with pytest.raises(StoreError, match=r"result\.csv is damaged"):
        _ = Evidence(plan).tables


def test_other_platforms_stand_beside_current_or_older(results: Path) -> None:
    here, same, other = (make_plan([f"platform={name}"]) for name in ("here", "same", "other"))
    for plan in (here, same, make_plan(["platform=local"])):
        complete(plan)
    older = results / "other" / "cpu_timing"
    for version, ended in (("aaaa", "2026-01-02"), ("bbbb", "2026-01-03"), ("cccc", "2026-01-01")):
        write(older / version, {"result": pd.DataFrame({"ms": [1]})}, {"ended": ended})
    beside = Evidence(make_plan(["platform=here"])).beside("cpu_timing")
    found = {it.stored.platform: (it.stored.version, it.current) for it in beside}
    current = same.results["cpu_timing"][0].version
    assert found == {
        "same": (current, True),
        "other": ("bbbb", False),
    }  # never local's, nor here's
    assert other.results["cpu_timing"][0].version == current
    assert [it.stored.platform for it in Evidence(here).beside("crossover")] == ["same"]
