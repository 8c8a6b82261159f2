"""GPU results of another machine, in the report and on the terminal of one that has no GPU."""

import subprocess
import sys

import pytest

from tiled_attention import gpu
from workflow.checkout import SMOKE, Checkout, environment

KERNEL = "src/tiled_attention/implementations/triton_flash_kernel.py"
RECORD = """
import sys
from dataclasses import replace
from plots import tables
from tiled_attention import store
from tiled_attention.plan import make_plan
(planned,) = make_plan(["experiment=smoke"]).with_gpu["gpu_timing"]
gpu = {"name": "NVIDIA H200", "memory_bytes": 150e9, "driver": "580.1", "power_limit_w": 700.0}
record = {"started": "2026-01-01", "ended": "2026-01-02", "machine": {"gpus": [gpu]},
          "software": {"torch": "2.11.0", "triton": "3.6.0"}, "options": {}}
result = tables.gpu_timing({"naive": 1.0, "tiled": 4.0, "triton_flash": 0.2})
store.write(replace(planned, platform="h200").folder, {"result": result}, record)
"""


@pytest.mark.workflow
@pytest.mark.skipif(gpu.present(), reason="this machine has a GPU of its own")
def test_recorded_gpu_results_are_shown_and_marked_once_the_kernel_is_edited(
    checkout: Checkout,
) -> None:
    path = f"{checkout.path / 'src'}:{checkout.path / 'tests'}"
    subprocess.run([sys.executable, "-c", RECORD], env=environment() | {"PYTHONPATH": path},
                   check=True)  # fmt: skip
    done = checkout.snakemake(*SMOKE)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no GPU here") == 1
    assert "recorded: h200" in done.stderr
    assert "older than the source" not in done.stderr
    report = checkout.path / "reports/local/report.md"
    assert "### h200: NVIDIA H200" in report.read_text()
    assert "| triton_flash | 500 [490, 510]" in report.read_text()
    assert "older than the source" not in report.read_text().partition("## On a GPU")[2]

    checkout.edit(KERNEL, "One block of BLOCK_M queries", "A block of BLOCK_M queries")
    done = checkout.snakemake(*SMOKE)
    assert done.returncode == 0, done.stderr
    refresh = "snakemake --cores 4 --config platform=h200"
    assert f"older than the source; on that machine `{refresh}` refreshes it" in done.stderr
    section = report.read_text().partition("## On a GPU")[2]
    assert "older than the source" in section
    assert refresh in section
