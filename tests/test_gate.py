"""The gate lets healthy kernels through, and nothing else."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from tiled_attention import gate
from tiled_attention.cases import Case
from tiled_attention.gate import truth
from tiled_attention.implementations.tiled import Tiled
from tiled_attention.mutants import MUTANTS

USUAL_TOLERANCE = 1e-2  # what many kernels' tests allow
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_healthy_kernels_pass_on_many_seeds(attend: Callable[..., Tensor], dtype: str) -> None:
    rejected = []
    for length in (1, 2, 3, 8, 17):
        for seed in range(50):
            shape = {"length_q": length, "length_kv": length, "head_dim": 16}
            case = Case("small", dtype=dtype, seed=seed, causal=bool(seed % 2), **shape)
            tensors = case.tensors()
            output = attend(*tensors, causal=case.causal)
            judgement = truth(*tensors, causal=case.causal).judge(output)
            if not judgement.passed:
                rejected.append((case, judgement))
    assert not rejected


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("length", [128, 512])
def test_bfloat16_kernel_with_three_times_its_error_fails(length: int, seed: int) -> None:
    case = Case("any", dtype="bfloat16", length_q=length, length_kv=length, seed=seed)
    tensors = case.tensors()
    known = truth(*tensors)
    healthy = scaled_dot_product_attention(*tensors)
    worse = (known.exact + 3 * (healthy.double() - known.exact)).bfloat16()
    assert known.judge(healthy).passed
    assert not known.judge(worse).passed


@pytest.mark.parametrize(
    ("exact", "output"), [(1.0, NAN), (NAN, 1.0), (NAN, NAN), (1.0, INF), (INF, INF), (1.0, -INF)]
)
def test_nan_and_infinity_never_pass(exact: float, output: float) -> None:
    known = truth(*Case("any").tensors())
    found = known.exact.float()
    assert known.judge(found).passed
    known.exact[0, 0, 0, 0], found[0, 0, 0, 0] = exact, output
    assert not known.judge(found).passed


def test_one_wrong_element_fails() -> None:
    tensors = Case("any", length_q=128, length_kv=128).tensors()
    known = truth(*tensors)
    output = Tiled()(*tensors)
    assert known.judge(output).passed
    output[0, 1, 100, 5] += 1e-5
    assert not known.judge(output).passed


@pytest.mark.parametrize("broken", [NAN, INF])
def test_truth_is_refused_where_it_is_not_finite(broken: float) -> None:
    query, key, value = Case("any").tensors()
    value[0, 0, 3, 3] = broken
    with pytest.raises(ValueError, match="not finite"):
        truth(query, key, value)


def test_errors_are_those_of_the_quantised_inputs() -> None:
    query, key, value = Case("any", dtype="bfloat16").tensors()
    known = truth(query, key, value)
    exact = scaled_dot_product_attention(query.double(), key.double(), value.double())
    torch.testing.assert_close(known.exact, exact, rtol=0, atol=1e-12)
    half_step = torch.finfo(torch.bfloat16).eps / 2 * exact.abs().max().item()
    judgement = known.judge(exact.bfloat16())
    assert 0 < judgement.max_abs_error <= half_step
    assert judgement.reference_max_abs_error == pytest.approx(judgement.max_abs_error, rel=0.05)
    assert judgement.tolerance == pytest.approx(
        2 * judgement.reference_max_abs_error + known.floor
    )


def test_bitwise_equality_and_difference_are_from_naive_attention() -> None:
    known = truth(*Case("any").tensors())
    same = known.judge(known.same_precision)
    assert same.bitwise_equal
    assert same.max_abs_difference == 0
    assert same.max_abs_error == same.reference_max_abs_error
    other = known.same_precision.clone()
    other[0, 0, 0, 0] += 2**-20
    assert not known.judge(other).bitwise_equal
    assert known.judge(other).max_abs_difference == pytest.approx(2**-20, rel=0.2)


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_process_wide_matmul_precision_changes_nothing(
    matmul_precision: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    tensors = Case("any", length_q=128, length_kv=128).tensors()
    output = Tiled()(*tensors)
    before = truth(*tensors)
    in_use = []

    def spying_attention(*args: Tensor, **call: object) -> Tensor:
        in_use.append(torch.get_float32_matmul_precision())
        return gate_attention(*args, **call)

    gate_attention = gate.attention
    monkeypatch.setattr(gate, "attention", spying_attention)
    matmul_precision(precision)
    after = truth(*tensors)
    assert in_use == ["highest", "highest"]
    assert torch.get_float32_matmul_precision() == precision
    assert after.judge(output) == before.judge(output)
    assert torch.equal(after.same_precision, before.same_precision)


def test_fixed_tolerance_lets_through_what_the_gate_rejects() -> None:
    tensors = Case("any", length_q=256, length_kv=256).tensors()
    known = truth(*tensors)
    dropped_precision = MUTANTS[0].build({"block_size": 64})(*tensors)
    fixed = torch.allclose(
        dropped_precision.double(), known.exact, rtol=USUAL_TOLERANCE, atol=USUAL_TOLERANCE
    )
    assert fixed
    judgement = known.judge(dropped_precision)
    assert judgement.max_abs_error > 100 * judgement.tolerance


def test_mask_and_scale_reach_the_reference() -> None:
    query, key, value = Case("any").tensors()
    mask = torch.zeros(64, 64).masked_fill(torch.eye(64) == 0, -math.inf)
    known = truth(query, key, value, mask=mask)
    assert torch.equal(known.same_precision, value)  # each query sees its own key only
    mean = truth(query, key, value, scale=0.0).exact
    torch.testing.assert_close(mean, value.double().mean(dim=2, keepdim=True).expand_as(mean))


@pytest.mark.parametrize("empty", [{"batch": 0}, {"length_q": 0}, {"length_kv": 0}])
def test_empty_shapes_are_judged(empty: dict[str, int]) -> None:
    query, key, value = replace(Case("any"), **empty).tensors()
    assert truth(query, key, value).judge(torch.zeros_like(query)).passed
    if query.numel():
        assert not truth(query, key, value).judge(torch.ones_like(query)).passed
