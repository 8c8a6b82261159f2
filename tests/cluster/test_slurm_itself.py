"""The SLURM that the cluster's tests run on does what they take for granted."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from cluster.slurm import CONFIGURATION, Slurm, missing

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(missing() is not None, reason=f"needs SLURM: {missing()}"),
]
SECONDS = 30


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    with Slurm(JobRequeue=0) as slurm:
        yield slurm


def submit(folder: Path, *arguments: str) -> str:
    command = ["sbatch", "--parsable", f"--chdir={folder}", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def running(slurm: Slurm, job: str) -> bool:
    return any(each["JobId"] == job and each["JobState"] == "RUNNING" for each in slurm.jobs())


def ended(slurm: Slurm, job: str) -> dict[str, str]:
    until(lambda: any(each["JobId"] == job for each in slurm.finished_jobs()))
    return next(each for each in slurm.finished_jobs() if each["JobId"] == job)


def test_a_partition_and_a_gpu_choose_the_node(slurm: Slurm, tmp_path: Path) -> None:
    show = "--wrap=echo $SLURMD_NODENAME ${CUDA_VISIBLE_DEVICES:-none}"
    cpu = submit(tmp_path, "--partition=cpu", "--output=cpu.txt", show)
    gpu = submit(tmp_path, "--gpus=h200:1", "--comment=on a GPU", "--output=gpu.txt", show)
    assert ended(slurm, cpu).items() >= {"NodeList": "cpu1", "JobState": "COMPLETED"}.items()
    expected = {"NodeList": "gpu1", "Comment": "on a GPU", "JOB_GRES": "gpu:h200:1"}
    assert ended(slurm, gpu).items() >= expected.items()
    until(lambda: (tmp_path / "cpu.txt").read_text() == "cpu1 none\n")
    until(lambda: (tmp_path / "gpu.txt").read_text() == "gpu1 0\n")


def test_a_cancelled_job_and_a_failed_one(slurm: Slurm, tmp_path: Path) -> None:
    job, failing = submit(tmp_path, "--wrap=sleep 600"), submit(tmp_path, "--wrap=exit 2")
    until(lambda: running(slurm, job))
    slurm.scancel(job)
    assert ended(slurm, job)["JobState"] == "CANCELLED"
    assert ended(slurm, failing).items() >= {"JobState": "FAILED", "ExitCode": "2:0"}.items()


def test_nothing_on_a_node_outlives_it(slurm: Slurm, tmp_path: Path) -> None:
    write = "--wrap=echo $$ > pid; srun sleep 600; echo on > on"
    job = submit(tmp_path, "--partition=gpu", write)
    until(lambda: running(slurm, job) and (tmp_path / "pid").exists())
    slurm.node_down("gpu1")
    assert slurm.nodes() == {"cpu1": "idle", "gpu1": "down"}
    assert ended(slurm, job)["JobState"] == "NODE_FAIL"
    assert not lives(int((tmp_path / "pid").read_text()))
    assert not (tmp_path / "on").exists()
    slurm.node_up("gpu1")
    again = submit(tmp_path, "--partition=gpu", "--wrap=true")
    assert ended(slurm, again).items() >= {"NodeList": "gpu1", "JobState": "COMPLETED"}.items()


def lives(process: int) -> bool:
    exists = psutil.pid_exists(process)
    return exists and psutil.Process(process).status() != psutil.STATUS_ZOMBIE


def test_a_crashed_run_is_cleared_away(tmp_path: Path) -> None:
    """In a process of its own, which dies with SLURM and a job running, then once more here."""
    before = {path.name for path in CONFIGURATION.iterdir()}
    child = os.fork()
    if child == 0:
        slurm = Slurm().start()
        job = submit(tmp_path, "--wrap=echo $$ > pid; sleep 600")
        until(lambda: running(slurm, job) and (tmp_path / "pid").exists())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with Slurm() as slurm:
        assert not lives(int((tmp_path / "pid").read_text()))
        assert slurm.nodes() == {"cpu1": "idle", "gpu1": "idle"}
        assert slurm.jobs() == []
    assert {path.name for path in CONFIGURATION.iterdir()} == before
    assert missing() is None
