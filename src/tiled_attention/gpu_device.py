"""What a GPU step runs on: a CUDA device, or Triton's interpreter where the options say so."""

import os
import socket
from collections.abc import Mapping
from typing import Any

import pynvml
import torch

from tiled_attention import gpu
from tiled_attention.errors import StepError
from tiled_attention.machine import require_gpu

INTERPRETER = "Triton's interpreter"
INTERPRETED_TFLOP = 1e-3  # the interpreter is slow; longer cases are skipped


def device_of(options: Mapping[str, Any]) -> str:
    """Return the device of the step's tensors; turns the interpreter on where it is asked for.

    Must be called before an implementation imports Triton.

    Raises:
        StepError: there is no CUDA device.
    """
    if not options.get("interpreted"):
        require_gpu()
        return "cuda"
    os.environ["TRITON_INTERPRET"] = "1"
    return "cpu"


def name_of(device: str) -> str:
    """Return the name of the GPU, or of what stands in for it."""
    return torch.cuda.get_device_name() if device == "cuda" else INTERPRETER


def require_idle() -> None:
    """Raise StepError where a process computes on the GPU, or heat or hardware slows it down.

    Must be called before this process uses the GPU: in a container its own number is not known.
    """
    node = socket.gethostname()
    with gpu.nvml():
        handle = gpu.visible_handle()
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
        if running:
            raise StepError(f"node {node}: {len(running)} other processes compute on its GPU")
        held = set(gpu.state(handle)["throttled"].split(" + ")) - {"", gpu.POWER_CAP}
        if held:
            raise StepError(f"node {node}: its GPU is slowed down ({', '.join(sorted(held))})")
