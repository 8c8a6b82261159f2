"""Each implementation's own account of its memory, against what it really allocates."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiled_attention.build import build
from tiled_attention.cases import Case
from tiled_attention.machine import SPARE
from tiled_attention.steps.peak_memory import peak_bytes

WITHIN = 0.02
WHOLE_BLOCKS = st.sampled_from([256, 512, 768, 1024])  # of every implementation's default blocks
HEAD_DIMS = st.sampled_from([32, 64, 128])


@st.composite
def timed_problems(draw: st.DrawFn) -> Case:
    """Draw problems of the timed kind: FP32, no mask, as many keys as queries, whole blocks."""
    heads, length = draw(st.integers(1, 4)), draw(WHOLE_BLOCKS)
    return Case(
        "timed",
        batch=draw(st.integers(1, 2)),
        heads=heads,
        heads_kv=heads,
        length_q=length,
        length_kv=length,
        head_dim=draw(HEAD_DIMS),
    )


@st.composite
def other_problems(draw: st.DrawFn) -> Case:
    """Draw what else may be asked whether it fits: any dtype, causal, grouped, ragged."""
    heads_kv = draw(st.integers(1, 3))
    return Case(
        "other",
        dtype=draw(st.sampled_from(["float32", "bfloat16", "float16"])),
        batch=draw(st.integers(1, 2)),
        heads=heads_kv * draw(st.integers(1, 3)),
        heads_kv=heads_kv,
        length_q=draw(st.integers(256, 1024)),
        length_kv=draw(st.integers(256, 1024)),
        head_dim=draw(HEAD_DIMS),
        causal=draw(st.booleans()),
    )


def accounted_and_measured(options: dict[str, Any], case: Case) -> tuple[int, int]:
    implementation = build(options)
    tensors = case.without_data()
    reason = implementation.unsupported(*tensors, causal=case.causal, mask=None)
    if reason is not None:
        pytest.skip(reason)
    account = implementation.peak_bytes(*tensors, causal=case.causal)
    return sum(account.values()), peak_bytes(implementation, case)


@settings(max_examples=20)
@given(case=timed_problems())
def test_account_is_the_measured_peak(options: dict[str, Any], case: Case) -> None:
    accounted, measured = accounted_and_measured(options, case)
    assert accounted == pytest.approx(measured, rel=WITHIN)


@settings(max_examples=20)
@given(case=other_problems())
def test_what_fits_by_its_account_fits(options: dict[str, Any], case: Case) -> None:
    accounted, measured = accounted_and_measured(options, case)
    assert accounted >= SPARE * measured


def test_account_grows_as_the_article_says(options: dict[str, Any]) -> None:
    """No implementation but naive attention holds anything quadratic in the length."""
    implementation = build(options)

    def account(length: int) -> int:
        case = Case("long", length_q=length, length_kv=length)
        return sum(implementation.peak_bytes(*case.without_data(), causal=False).values())

    growth = account(2**20) / account(2**19)
    if options["_target_"].endswith(".Naive"):
        assert growth == pytest.approx(4, rel=0.01)
    else:
        assert growth == pytest.approx(2, rel=0.01)
