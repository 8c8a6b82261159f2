"""Exact byte counts: the article's integers, and laws that hold for all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiled_attention.sizes import (
    ITEM_BYTES,
    largest_length,
    naive_bytes,
    output_bytes,
    query_tiled_bytes,
    tiled_bytes,
)

LENGTHS = st.integers(1, 10**7)
COUNTS = st.integers(1, 512)
DTYPES = st.sampled_from(sorted(ITEM_BYTES))


def test_article_check_shape() -> None:
    assert naive_bytes(512, 4, 2, "float32") == 8_388_608
    assert tiled_bytes(512, 4, 2, "float32", 64) == 1_048_576
    assert query_tiled_bytes(512, 4, 2, "float32", 64) == 131_072
    assert output_bytes(512, 4, 2, "float32", 64) == 1_048_576


@given(memory=st.integers(0, 10**13), heads=COUNTS, batch=COUNTS, dtype=DTYPES)
def test_largest_length_is_the_last_that_fits(
    memory: int, heads: int, batch: int, dtype: str
) -> None:
    length = largest_length(memory, heads, batch, dtype)
    assert naive_bytes(length, heads, batch, dtype) <= memory
    assert memory < naive_bytes(length + 1, heads, batch, dtype)


@given(length=LENGTHS, heads=COUNTS, batch=COUNTS, dtype=DTYPES)
def test_length_that_fills_the_memory_exactly_fits(
    length: int, heads: int, batch: int, dtype: str
) -> None:
    memory = naive_bytes(length, heads, batch, dtype)
    assert largest_length(memory, heads, batch, dtype) == length
    assert largest_length(memory - 1, heads, batch, dtype) == length - 1


@given(length=LENGTHS, heads=COUNTS, batch=COUNTS, dtype=DTYPES, block_size=st.integers(1, 10**4))
def test_tiling_never_holds_more(
    length: int, heads: int, batch: int, dtype: str, block_size: int
) -> None:
    shape = (length, heads, batch, dtype)
    both, keys, naive = (
        query_tiled_bytes(*shape, block_size),
        tiled_bytes(*shape, block_size),
        naive_bytes(*shape),
    )
    assert 0 < both <= keys <= naive
    if block_size >= length:
        assert both == keys == naive
    else:
        assert naive * block_size == keys * length  # the reduction is length / block_size
        assert keys * block_size == both * length


@pytest.mark.parametrize("dtype", sorted(ITEM_BYTES))
def test_every_dtype_has_its_size(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    assert ITEM_BYTES[dtype] == getattr(torch, dtype).itemsize
