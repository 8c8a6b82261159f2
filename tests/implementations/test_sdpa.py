"""The fused reference runs PyTorch's fused kernel, or refuses."""

import math

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tiled_attention.cases import Case
from tiled_attention.implementations.sdpa import Sdpa, causal_mask

STRIDED = Case("any", inputs="strided").tensors()


def test_fused_kernel_really_runs() -> None:
    for case in (Case("any"), Case("any", heads_kv=1), Case("any", causal=True, length_q=40)):
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            Sdpa()(*case.tensors(), causal=case.causal)
        operators = {event.key for event in profiler.key_averages()}
        assert "aten::_scaled_dot_product_flash_attention_for_cpu" in operators
        assert "aten::_scaled_dot_product_attention_math" not in operators


@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's reasons
def test_no_other_kernel_takes_over_unseen() -> None:
    assert "stride 1" in Sdpa().unsupported(*STRIDED, causal=False, mask=None)
    with pytest.raises(RuntimeError, match="No available kernel"):
        Sdpa()(*STRIDED)


def test_causal_mask_is_aligned_to_the_bottom_right() -> None:
    query = torch.zeros(1, 1, 2, 8)
    visible = causal_mask((2, 3), query, None)
    assert visible.tolist() == [[True, True, False], [True, True, True]]
    mask = torch.tensor([[True, False, True]])
    assert causal_mask((2, 3), query, mask).tolist() == [[True, False, False], [True, False, True]]
    addend = torch.tensor([[1.0, 2.0, 3.0]])
    assert causal_mask((2, 3), query, addend).tolist() == [[1, 2, -math.inf], [1, 2, 3]]
