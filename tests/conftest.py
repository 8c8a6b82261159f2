"""Every implementation of config/implementation/ that runs on a CPU, called the same way."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings
from omegaconf import OmegaConf
from torch import Tensor

from tiled_attention.build import build

CONFIGURED = Path(__file__).resolve().parents[1] / "config" / "implementation"
IMPLEMENTATIONS = {path.stem: OmegaConf.load(path) for path in sorted(CONFIGURED.glob("*.yaml"))}
ON_CPU = {
    name: node for name, node in IMPLEMENTATIONS.items() if "cpu" in node.get("_devices_", ["cpu"])
}

settings.register_profile("repeatable", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", params=ON_CPU.values(), ids=ON_CPU)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of one implementation, `_target_` included."""
    return OmegaConf.to_container(request.param)


@pytest.fixture(scope="session")
def attend(options: dict[str, Any]) -> Callable[..., Tensor]:
    """Compute attention in blocks of `block_size`, or skip with the implementation's reason."""

    def attend(
        *tensors: Tensor,
        block_size: int = 16,
        causal: bool = False,
        scale: float | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        small = {name: block_size for name in options if name.endswith("block_size")}
        implementation = build(options | small)
        reason = implementation.unsupported(*tensors, causal=causal, mask=mask)
        if reason is not None:
            pytest.skip(reason)
        return implementation(*tensors, causal=causal, scale=scale, mask=mask)

    return attend


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Small tensors gain nothing from more, and several tests may run side by side."""
    torch.set_num_threads(1)


@pytest.fixture
def set_threads() -> Iterator[Callable[[int], None]]:
    """Set PyTorch's threads, until the test ends."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def matmul_precision() -> Iterator[Callable[[str], None]]:
    """Set PyTorch's precision of FP32 products, until the test ends."""
    before = torch.get_float32_matmul_precision()
    yield torch.set_float32_matmul_precision
    torch.set_float32_matmul_precision(before)
