"""The GPU as NVML tells of it: is there one, and in which state is it?"""

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import Any

import pynvml

from tiled_attention.errors import StepError

POWER_CAP = "power cap"  # usual for matrix work, so no fault
# Reasons for lower clocks that are none of the work's own doing.
THROTTLING = {
    "thermal": pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
    | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "hardware": pynvml.nvmlClocksThrottleReasonHwSlowdown
    | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    POWER_CAP: pynvml.nvmlClocksThrottleReasonSwPowerCap,
}


@contextlib.contextmanager
def nvml() -> Iterator[None]:
    """Hold NVML open; raises pynvml.NVMLError where there is no driver."""
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def present() -> bool:
    """Tell whether this process may use an NVIDIA GPU, without starting CUDA."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return False
    try:
        with nvml():
            return bool(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return False


def visible_handle() -> Any:
    """Return NVML's handle of the first GPU that CUDA will use, without starting CUDA.

    NVML must be open.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if first.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(first))
    return pynvml.nvmlDeviceGetHandleByUUID(first)


def require_named(expected: str, platform: str) -> None:
    """Raise StepError where no GPU is visible, or its name does not hold `expected`."""
    node = socket.gethostname()
    try:
        with nvml():
            name = _text(pynvml.nvmlDeviceGetName(visible_handle()))
    except pynvml.NVMLError as error:
        raise StepError(f"node {node}: no GPU is visible ({error})") from None
    if expected.lower() not in name.lower():
        raise StepError(
            f"node {node}: its GPU is '{name}', but platform '{platform}' has '{expected}' "
            f"(config/machine/{platform}.yaml)"
        )


def described() -> list[dict[str, Any]]:
    """Return name, memory, driver, power limit and highest clocks of every GPU; [] for none."""
    if not present():
        return []
    with nvml():
        devices = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        return [
            {
                "name": _text(pynvml.nvmlDeviceGetName(device)),
                "memory_bytes": pynvml.nvmlDeviceGetMemoryInfo(device).total,
                "driver": _text(pynvml.nvmlSystemGetDriverVersion()),
                "power_limit_w": pynvml.nvmlDeviceGetPowerManagementLimit(device) / 1e3,
                "sm_clock_mhz": pynvml.nvmlDeviceGetMaxClockInfo(device, pynvml.NVML_CLOCK_SM),
                "memory_clock_mhz": pynvml.nvmlDeviceGetMaxClockInfo(
                    device, pynvml.NVML_CLOCK_MEM
                ),
            }
            for device in devices
        ]


def _text(value: Any) -> str:
    """Older NVML bindings return bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)


def state(device: Any) -> dict[str, Any]:
    """Return clocks (MHz), power (W), temperature (degrees C) and why the clocks are held down."""
    reasons = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(device)
    return {
        "sm_clock_mhz": pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM),
        "memory_clock_mhz": pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_MEM),
        "power_w": pynvml.nvmlDeviceGetPowerUsage(device) / 1e3,
        "temperature_c": pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU),
        "throttled": " + ".join(name for name, bits in THROTTLING.items() if reasons & bits),
    }
