"""Exact sizes, in integers: what the article's arithmetic counts, and what fits in a memory."""

from math import isqrt

ITEM_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def naive_bytes(length: int, heads: int, batch: int, dtype: str) -> int:
    """Return the bytes of one length x length score matrix for every head."""
    return batch * heads * length * length * ITEM_BYTES[dtype]


def tiled_bytes(length: int, heads: int, batch: int, dtype: str, block_size: int) -> int:
    """Return the bytes of one length x block_size block of scores for every head."""
    return batch * heads * length * min(block_size, length) * ITEM_BYTES[dtype]


def query_tiled_bytes(length: int, heads: int, batch: int, dtype: str, block_size: int) -> int:
    """Return the bytes of one block_size x block_size block of scores for every head."""
    return batch * heads * min(block_size, length) ** 2 * ITEM_BYTES[dtype]


def output_bytes(length: int, heads: int, batch: int, dtype: str, head_dim: int) -> int:
    """Return the bytes of the output, length x head_dim for every head."""
    return batch * heads * length * head_dim * ITEM_BYTES[dtype]


def largest_length(memory_bytes: int, heads: int, batch: int, dtype: str) -> int:
    """Return the largest length whose naive scores are at most `memory_bytes`."""
    return isqrt(memory_bytes // (batch * heads * ITEM_BYTES[dtype]))
