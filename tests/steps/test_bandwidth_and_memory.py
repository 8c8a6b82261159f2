"""CPU bandwidth measured for real; the GPU's steps without a GPU give no number."""

from typing import Any

import pytest
import torch

from tiled_attention.compose import composed
from tiled_attention.config import Config
from tiled_attention.errors import StepError
from tiled_attention.machine import usable_cores
from tiled_attention.sizes import ITEM_BYTES
from tiled_attention.steps import cpu_bandwidth, gpu_bandwidth, gpu_memory, gpu_traffic

CHOSEN = {"working_sets_kib": [16, 16384], "samples": 3, "confidence": 0.95, "resamples": 100}


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("TRITON_INTERPRET", "0")  # restored afterwards, whatever a step sets
    return composed(["experiment=smoke"])


def test_every_working_set_by_one_core_and_by_all() -> None:
    tables = cpu_bandwidth.measure({"cpu_bandwidth": CHOSEN}, {})
    result = tables["result"]
    assert set(result["cores"]) == {1, usable_cores()}
    assert set(result["working_set_bytes"]) == {2**14, 2**24}
    assert (result["gb_per_s"] > 0.1).all()
    assert (result["ci_low"] <= result["gb_per_s"]).all()
    assert len(tables["samples"]) == 3 * len(result)


def test_the_bytes_read_are_counted() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        seconds, read = cpu_bandwidth.read_all(pool, [torch.ones(2**12)])
    assert read == cpu_bandwidth.READ_BYTES
    assert seconds > 0


def test_a_working_set_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_bandwidth, "available_bytes", lambda: 2**20)
    with pytest.raises(StepError, match=r"cpu_bandwidth.working_sets_kib: needs"):
        cpu_bandwidth.measure({"cpu_bandwidth": CHOSEN}, {})


@pytest.mark.parametrize("step", [gpu_bandwidth, gpu_memory, gpu_traffic])
def test_interpreted_gpu_steps_hold_no_number(step: Any, config: Config) -> None:
    name = step.__name__.rpartition(".")[2]
    options = {name: getattr(config, name).__dict__, "interpreted": True,
               "implementations": config.implementations}  # fmt: skip
    if name == "gpu_traffic":
        options[name] = options[name] | {"grid": config.gpu_traffic.grid.__dict__}
    (result,) = step.measure(options, {}).values()
    assert len(result)
    assert result["status"].str.startswith("not measured: interpreted").all()
    assert not {"gb_per_s", "peak_bytes", "read_bytes"} & set(result)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("step", [gpu_bandwidth, gpu_memory])
def test_without_a_gpu_they_fail(step: Any, config: Config) -> None:
    name = step.__name__.rpartition(".")[2]
    with pytest.raises(StepError, match="needs a CUDA device"):
        step.measure({name: getattr(config, name).__dict__}, {})


def test_theory_by_hand() -> None:
    case = gpu_traffic.Case("any", dtype="bfloat16", heads=3, length_q=1024, length_kv=1024,
                            head_dim=64)  # fmt: skip
    found = gpu_traffic.theory(case, on_chip_bytes=2**17)
    item = ITEM_BYTES["bfloat16"]
    assert found["least_bytes"] == 4 * 3 * 1024 * 64 * item
    assert found["standard_bytes"] == found["least_bytes"] + 4 * 3 * 1024**2 * item
    # N^2 d^2 / M elements: M = 65,536, so 64^2 / 65,536 = 1/16 of a score matrix
    assert found["flash_bytes"] == max(found["least_bytes"], 3 * 1024**2 * item // 16)
