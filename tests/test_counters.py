"""Nsight Compute's CSV, put together call by call; the tool itself is faked."""

import os
import stat
from pathlib import Path

import pytest

from tiled_attention import counters
from tiled_attention.errors import StepError

HEADER = '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'


def output(*kernels: tuple[str, str, str]) -> str:
    lines = ["==PROF== Connected to process 12 (/usr/bin/python3)", HEADER]
    for number, (name, read, written) in enumerate(kernels):
        for metric, value in (("read", read), ("write", written)):
            lines.append(f'"{number}","12","{name}","dram__bytes_{metric}.sum","byte","{value}"')
    return "\n".join(lines) + "\n"


CALLS = output(
    ("at::cuda::(anonymous namespace)::spin_kernel(long)", "64", "0"),
    ("gemm", "1,000", "200"),
    ("softmax", "300", "40"),
    ("at::cuda::(anonymous namespace)::spin_kernel(long)", "64", "0"),
    ("flash_forward", "70", "7"),
)


def test_sums_of_each_call_without_its_marker() -> None:
    assert counters.by_call(CALLS) == [
        {"read_bytes": 1300, "written_bytes": 240, "kernels": 2},
        {"read_bytes": 70, "written_bytes": 7, "kernels": 1},
    ]
    assert counters.by_call("==PROF== nothing\n") == []


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in ncu's place that prints the file beside it."""
    tool = tmp_path / "ncu"
    tool.write_text(f"#!/bin/sh\ncat '{tmp_path}/said'\nexit $(cat '{tmp_path}/code')\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_counts_of_every_call(ncu: Path) -> None:
    (ncu / "said").write_text(CALLS)
    assert [it["kernels"] for it in counters.count([{}, {}])] == [2, 1]


@pytest.mark.parametrize(
    ("said", "code", "message"),
    [
        ("==ERROR== ERR_NVGPUCTRPERM - no permission\n", "1", "ERR_NVGPUCTRPERM"),
        ("", "9", "Nsight Compute failed: no message"),
        (CALLS, "0", "told of 2 of 3 calls"),
    ],
)
def test_a_failure_is_one_line(ncu: Path, said: str, code: str, message: str) -> None:
    (ncu / "said").write_text(said)
    (ncu / "code").write_text(code)
    with pytest.raises(StepError, match=message):
        counters.count([{}, {}, {}])


def test_without_the_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StepError, match="not installed"):
        counters.count([])
