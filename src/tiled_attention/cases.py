"""The problems that every implementation is judged on: named, seeded, reproducible."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Case:
    """One attention problem. `inputs` and `hidden` name entries of INPUTS and MASKS below."""

    name: str
    dtype: str = "float32"
    batch: int = 1
    heads: int = 2
    heads_kv: int = 2
    length_q: int = 64
    length_kv: int = 64
    head_dim: int = 64
    causal: bool = False
    seed: int = 0
    block_size: int | None = None  # of the implementation; None keeps its own
    inputs: str = "normal"
    hidden: str = "nothing"
    last_batch_only: bool = False  # compare the last sequence of the batch alone

    def tensors(self, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value, from the seed and the kind of device alone."""
        generator = torch.Generator(device).manual_seed(self.seed)

        def normal(heads: int, length: int) -> Tensor:
            shape = (self.batch, heads, length, self.head_dim)
            numbers = torch.randn(shape, generator=generator, device=device)
            return numbers.to(getattr(torch, self.dtype))

        query = normal(self.heads, self.length_q)
        key = normal(self.heads_kv, self.length_kv)
        value = normal(self.heads_kv, self.length_kv)
        query, key, value = INPUTS[self.inputs](query, key, value)
        return query, key, value

    def mask(self) -> Tensor | None:
        """Return the mask, (length_q, length_kv), or None."""
        return MASKS[self.hidden](self)

    def flop(self) -> int:
        """Return the multiplications and additions of both products, for visible pairs only."""
        pairs = self.length_q * self.length_kv
        if self.causal:
            offset = self.length_kv - self.length_q
            pairs = sum(
                max(0, min(self.length_kv, row + 1 + offset)) for row in range(self.length_q)
            )
        return 4 * self.batch * self.heads * pairs * self.head_dim

    def without_data(self, device: str = "cpu") -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value of the right shape, dtype and device that hold one row."""
        dtype = getattr(torch, self.dtype)
        row = torch.empty(self.head_dim, dtype=dtype, device=device)
        return tuple(  # type: ignore[return-value]
            row.expand(self.batch, heads, length, self.head_dim)
            for heads, length in (
                (self.heads, self.length_q),
                (self.heads_kv, self.length_kv),
                (self.heads_kv, self.length_kv),
            )
        )


def _strided(tensor: Tensor) -> Tensor:
    """Hold the same values, with a stride of 2 in the last dimension."""
    return tensor.repeat_interleave(2, dim=-1)[..., ::2]


def _permuted(tensor: Tensor) -> Tensor:
    """Hold the same values, stored as (batch, length, heads, head_dim)."""
    return tensor.permute(0, 2, 1, 3).contiguous().permute(0, 2, 1, 3)


def _first_key_everywhere(tensor: Tensor) -> Tensor:
    return tensor[:, :, :1].expand_as(tensor)


def _very_negative_score(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
    """Make query . key = -524288 exactly, below any finite stand-in for minus infinity."""
    size = math.sqrt(524288 / query.shape[-1])
    return torch.full_like(query, size), torch.full_like(key, -size), torch.ones_like(value)


INPUTS: dict[str, Callable[..., Any]] = {
    "normal": lambda query, key, value: (query, key, value),
    "zero query": lambda query, key, value: (torch.zeros_like(query), key, value),
    "zero query, value one": lambda query, key, value: (
        torch.zeros_like(query),
        key,
        torch.ones_like(value),
    ),
    "five times larger": lambda query, key, value: (5 * query, 5 * key, 5 * value),
    "logits times 1e4": lambda query, key, value: (100 * query, 100 * key, value),
    "permuted": lambda *tensors: tuple(map(_permuted, tensors)),
    "strided": lambda *tensors: tuple(map(_strided, tensors)),
    "expanded key": lambda query, key, value: (query, _first_key_everywhere(key), value),
    "very negative score": _very_negative_score,
}


def _visible(case: Case) -> Tensor:
    return torch.ones(case.length_q, case.length_kv, dtype=torch.bool)


def _hide_later_rows(case: Case) -> Tensor:
    visible = _visible(case)
    visible[case.length_q // 2 :] = False
    return visible


def _hide_first_keys(case: Case) -> Tensor:
    """Hide the first half of the keys from the last half of the rows."""
    visible = _visible(case)
    visible[case.length_q // 2 :, : case.length_kv // 2] = False
    return visible


def _as_addend(visible: Tensor, case: Case, hidden: float) -> Tensor:
    addend = torch.zeros(visible.shape, dtype=getattr(torch, case.dtype))
    return addend.masked_fill(~visible, hidden)


MASKS: dict[str, Callable[[Case], Tensor | None]] = {
    "nothing": lambda case: None,
    "later rows": _hide_later_rows,
    "first keys": _hide_first_keys,
    "later rows, addend": lambda case: _as_addend(_hide_later_rows(case), case, -math.inf),
    "later rows, finite addend": lambda case: _as_addend(
        _hide_later_rows(case), case, torch.finfo(getattr(torch, case.dtype)).min
    ),
}

HEAD_DIMS = (8, 16, 32, 40, 64, 80, 96, 128, 256)
RAGGED = ((15, 17), (16, 16), (17, 15), (1, 137), (137, 1), (137, 63), (64, 65), (63, 137))
UNEQUAL = ((2, 5), (5, 2), (1, 8), (8, 8), (64, 137), (137, 64))
SHORT = (1, 2, 8)


def offsets_case() -> Iterator[Case]:
    """Yield the case whose element offsets pass 2**31, for a GPU with the memory for it."""
    yield Case(
        "offsets past 2**31",
        dtype="bfloat16",
        batch=257,
        heads=32,
        heads_kv=32,
        length_q=4096,
        length_kv=4096,
        last_batch_only=True,
    )


def hard_cases(dtypes: Iterable[str]) -> Iterator[Case]:
    """Yield the cases that catch the faults seen in public attention kernels, in each dtype."""
    for dtype in dtypes:
        for case in _hard_cases():
            # In FP16, the finite addend is too small to absorb a score: nothing special.
            if not (dtype == "float16" and case.hidden == "later rows, finite addend"):
                yield replace(case, dtype=dtype)


def _hard_cases() -> Iterator[Case]:
    for hidden in MASKS:
        if hidden != "nothing":
            yield Case(f"mask hides {hidden}", hidden=hidden, block_size=16)
    yield Case(
        "mask hides later rows of 8", length_q=8, length_kv=8, hidden="later rows", block_size=8
    )
    yield Case("mask and causal", hidden="first keys", causal=True, block_size=16)
    for length_q, length_kv in UNEQUAL:
        yield Case("causal, unequal lengths", length_q=length_q, length_kv=length_kv, causal=True)
    for length_q, length_kv in RAGGED:
        yield Case("ragged", length_q=length_q, length_kv=length_kv, block_size=16)
        yield Case(
            "ragged, causal", length_q=length_q, length_kv=length_kv, causal=True, block_size=16
        )
    several_blocks = Case("several query blocks", length_q=600, length_kv=520)
    yield replace(several_blocks, causal=True)
    yield replace(several_blocks, hidden="first keys")
    yield Case("one query", batch=4, heads=32, heads_kv=32, length_q=1, length_kv=20, head_dim=128)
    for head_dim in HEAD_DIMS:
        yield Case("head size", head_dim=head_dim, length_q=80, length_kv=80, block_size=8)
    for inputs in ("permuted", "strided", "expanded key"):
        yield Case(f"layout: {inputs}", inputs=inputs, length_q=80, length_kv=80)
    for heads, heads_kv in ((24, 12), (6, 2), (5, 1)):
        yield Case("grouped heads", heads=heads, heads_kv=heads_kv, causal=True)
    for inputs in ("five times larger", "logits times 1e4"):
        yield Case(f"magnitude: {inputs}", inputs=inputs, length_q=137, length_kv=137)
    yield Case(
        "uniform attention",
        length_q=5,
        length_kv=5,
        inputs="zero query, value one",
        block_size=16,
    )
    yield Case("uniform attention, causal", inputs="zero query", causal=True, block_size=16)
    yield Case(
        "very negative score",
        inputs="very negative score",
        length_q=1,
        length_kv=1,
        head_dim=128,
    )
    for length in SHORT:
        yield Case("short", length_q=length, length_kv=length, causal=True)
    yield Case("no keys", length_kv=0)
    yield Case("no queries", length_q=0)
    yield Case("empty batch", batch=0)
