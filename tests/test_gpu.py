"""NVML's answers, and what is made of them; the driver itself is faked."""

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from tiled_attention import gpu, gpu_device
from tiled_attention.errors import StepError

CAPPED, HOT = pynvml.nvmlClocksThrottleReasonSwPowerCap, pynvml.nvmlClocksThrottleReasonHwSlowdown


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A driver with two GPUs, whose processes and throttling a test may set."""
    state = SimpleNamespace(processes=[], reasons=0, asked=[])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")

    def handle(kind: str) -> Any:
        return lambda which: state.asked.append((kind, which)) or which

    for name, answer in {
        "Init": lambda: None,
        "Shutdown": lambda: None,
        "DeviceGetCount": lambda: 2,
        "DeviceGetHandleByIndex": handle("index"),
        "DeviceGetHandleByUUID": handle("uuid"),
        "DeviceGetName": lambda device: b"NVIDIA H200",
        "DeviceGetMemoryInfo": lambda device: SimpleNamespace(total=150 * 10**9),
        "SystemGetDriverVersion": lambda: "580.1",
        "DeviceGetPowerManagementLimit": lambda device: 700_000,
        "DeviceGetMaxClockInfo": lambda device, clock: 1980,
        "DeviceGetClockInfo": lambda device, clock: 1755,
        "DeviceGetPowerUsage": lambda device: 689_500,
        "DeviceGetTemperature": lambda device, sensor: 61,
        "DeviceGetCurrentClocksThrottleReasons": lambda device: state.reasons,
        "DeviceGetComputeRunningProcesses": lambda device: state.processes,
    }.items():
        monkeypatch.setattr(pynvml, f"nvml{name}", answer)
    return state


def test_no_driver_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert not gpu.present()
    assert gpu.described() == []


@pytest.mark.parametrize(("hidden", "there"), [("", False), ("-1", False), ("0", True)])
def test_hidden_devices_are_not_there(
    driver: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, hidden: str, there: bool
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    assert gpu.present() is there


def test_provenance_and_state_are_in_plain_units(driver: SimpleNamespace) -> None:
    first, _ = gpu.described()
    assert first["name"] == "NVIDIA H200"
    assert first["power_limit_w"] == 700
    driver.reasons = CAPPED | HOT
    assert gpu.state(0) == {
        "sm_clock_mhz": 1755,
        "memory_clock_mhz": 1755,
        "power_w": 689.5,
        "temperature_c": 61,
        "throttled": "hardware + power cap",
    }


def test_an_idle_gpu_at_its_power_cap_may_be_timed(driver: SimpleNamespace) -> None:
    driver.reasons = CAPPED
    gpu_device.require_idle()
    assert driver.asked == [("index", 1)]


def test_a_gpu_is_found_by_its_uuid(
    driver: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-12,GPU-13")
    gpu_device.require_idle()
    assert driver.asked == [("uuid", "GPU-12")]


def test_a_busy_or_throttled_gpu_is_refused_and_the_node_named(
    driver: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_device.socket, "gethostname", lambda: "node7")
    driver.processes = [SimpleNamespace(pid=1)]
    with pytest.raises(StepError, match="node node7: 1 other processes compute on its GPU"):
        gpu_device.require_idle()
    driver.processes, driver.reasons = [], HOT
    with pytest.raises(StepError, match=r"node node7: its GPU is slowed down \(hardware\)"):
        gpu_device.require_idle()


def test_another_gpu_than_the_platforms_is_refused_and_both_are_named(
    driver: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu.socket, "gethostname", lambda: "node7")
    gpu.require_named("h200", "h200")
    with pytest.raises(StepError) as caught:
        gpu.require_named("A100", "a100")
    assert str(caught.value) == (
        "node node7: its GPU is 'NVIDIA H200', but platform 'a100' has 'A100' "
        "(config/machine/a100.yaml)"
    )
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: (_ for _ in ()).throw(pynvml.NVMLError(9)))
    with pytest.raises(StepError, match="node node7: no GPU is visible"):
        gpu.require_named("A100", "a100")
