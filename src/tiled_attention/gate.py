"""The gate: is an output as right as the arithmetic allows?

The criterion is relative, as in FlashAttention's own tests: the candidate may err at most twice
as much as naive attention does in the same precision, both measured against FP64, plus a floor
for cases in which naive attention happens to be nearly exact. "The same precision" is the most
that the arithmetic allows: inputs and output in the candidate's dtype, everything between in
FP32, but for the probabilities on a GPU, whose matrix units take operands in that dtype. A
kernel that rounds its probabilities once to BF16 fits under that; one that errs three times as
much as a healthy one does not.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tiled_attention.reference import attention, full_precision, largest_score

RELATIVE = 2.0
SCORE_ROUNDING = 0.125
FLOOR_EPSILONS = {torch.float32: 2.0, torch.bfloat16: 0.125, torch.float16: 0.125}


@dataclass(frozen=True)
class Judgement:
    """What the gate found for one output; errors are absolute, in the output's own unit."""

    max_abs_error: float
    reference_max_abs_error: float
    tolerance: float
    passed: bool
    max_abs_difference: float  # from naive attention in the same precision
    bitwise_equal: bool  # to naive attention in the same precision


@dataclass(frozen=True)
class Truth:
    """The exact output of one problem, and naive attention's output in the problem's dtype."""

    exact: Tensor  # FP64
    same_precision: Tensor
    dtype: torch.dtype
    largest_score: float
    largest_value: float

    @property
    def floor(self) -> float:
        """What rounding alone can do: of the output, and of a large score before its exponential.

        Rounding a score s to FP32 changes its probability by a factor of up to exp(eps |s| / 2),
        whatever the kernel; a fraction of that bound is allowed.
        """
        output = FLOOR_EPSILONS[self.dtype] * torch.finfo(self.dtype).eps * largest_abs(self.exact)
        score = SCORE_ROUNDING * torch.finfo(torch.float32).eps * self.largest_score
        return output + score * self.largest_value

    def judge(self, output: Tensor) -> Judgement:
        """Judge `output`, which must have the problem's shape and dtype. NaN never passes."""
        output = output.to(self.exact.device)
        error = largest_abs(output.double() - self.exact)
        reference_error = largest_abs(self.same_precision.double() - self.exact)
        tolerance = RELATIVE * reference_error + self.floor
        return Judgement(
            max_abs_error=error,
            reference_max_abs_error=reference_error,
            tolerance=tolerance,
            passed=error <= tolerance,  # False where the error is NaN
            max_abs_difference=largest_abs(output.double() - self.same_precision.double()),
            bitwise_equal=torch.equal(output, self.same_precision.to(self.dtype)),
        )


def largest_abs(tensor: Tensor) -> float:
    """Return the largest absolute value; NaN if there is any NaN, 0 for an empty tensor."""
    return tensor.abs().max().item() if tensor.numel() else 0.0


def truth(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    mask: Tensor | None = None,
) -> Truth:
    """Compute what the gate compares with, from the quantised inputs raised to FP64.

    Raises:
        ValueError: the exact output is not finite, so that nothing could be judged.
    """
    tensors = query, key, value
    with full_precision():
        exact = attention(*tensors, causal=causal, scale=scale, mask=mask, compute=torch.float64)
        same_precision = attention(
            *tensors,
            causal=causal,
            scale=scale,
            mask=mask,
            compute=torch.float32,
            storage=query.dtype,
            operands=query.dtype if query.is_cuda else None,
        )
        score = largest_score(query, key, scale)
    if not math.isfinite(largest_abs(exact)):
        raise ValueError("the FP64 reference is not finite: the inputs hold NaN or infinity")
    return Truth(exact, same_precision, query.dtype, score, largest_abs(value.double()))
