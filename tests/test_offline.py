"""Every tuned configuration compiles for every generation, fits, and uses its tensor cores."""

import pytest

from tiled_attention.implementations.tuned import Blocks, choose_blocks
from tiled_attention.offline import SHARED_BYTES, compiled, resources
from tiled_attention.steps import kernel_resources

INSTRUCTION = {80: "mma.sync", 90: "wgmma.mma_async", 100: "tcgen05.mma"}


def test_the_timed_kernel_on_hopper() -> None:
    options = {"capabilities": [90], "dtypes": ["bfloat16"], "head_dims": [128], "causal": [True]}
    rows = kernel_resources.measure({"kernel_resources": options}, {})["result"]
    (row,) = rows.to_dict("records")
    assert row["matrix_instruction"] == "wgmma.mma_async"
    assert row["tma"]
    assert row["spilled_bytes"] == 0
    assert 0 < row["registers"] <= 255
    assert 0 < row["shared_bytes"] <= row["shared_bytes_limit"] == 232_448
    assert row["block_m"] == choose_blocks(90, 128, 2).block_m


@pytest.mark.offline
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_dim", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("capability", SHARED_BYTES)
def test_every_configuration(capability: int, dtype: str, head_dim: int, causal: bool) -> None:
    blocks = choose_blocks(capability, head_dim, 4 if dtype == "float32" else 2)
    found = resources(compiled(capability, dtype, head_dim, causal, blocks))
    assert found["shared_bytes"] <= SHARED_BYTES[capability]
    assert found["tma"] == (capability >= 90)
    if dtype != "float32":  # true FP32 products run on the ordinary units
        assert found["matrix_instruction"] == INSTRUCTION[capability]


def test_spills_and_registers_are_the_assemblers_own() -> None:
    """A block far too large for its registers spills, and the count says so."""
    narrow = resources(compiled(90, "bfloat16", 64, False, Blocks(64, 64, 4, 2)))
    wide = resources(compiled(90, "bfloat16", 128, False, Blocks(128, 128, 4, 2)))
    assert narrow["spilled_bytes"] == 0
    assert wide["spilled_bytes"] > 0
    assert narrow["registers"] < wide["registers"] <= 255
