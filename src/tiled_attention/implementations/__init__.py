"""One attention implementation per file; a config/implementation/*.yaml names each by `_target_`.

Every implementation is a small class with three methods, described by `Attention` below.
Files in this folder import nothing else of the package.
"""

from typing import Protocol

from torch import Tensor


class Attention(Protocol):
    """What an implementation must offer; a plain class with these methods is enough."""

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        causal: bool = False,
        scale: float | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Softmax(scale * query @ key^T + mask) @ value, per head.

        query is (batch, heads, length_q, head_dim); key and value are (batch, heads_kv,
        length_kv, head_dim), where heads is a multiple of heads_kv. `causal` is aligned to the
        bottom right: the last query sees the last key. `scale` defaults to 1 / sqrt(head_dim).
        `mask` broadcasts to (batch, heads, length_q, length_kv): boolean with True for visible,
        or a floating-point addend. A row that sees no key is 0. Returns query's shape and dtype.
        """
        ...

    def unsupported(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool, mask: Tensor | None
    ) -> str | None:
        """Return why this call is not supported, or None. Tensors may hold one row only."""
        ...

    def peak_bytes(
        self, query: Tensor, key: Tensor, value: Tensor, *, causal: bool
    ) -> dict[str, int]:
        """Return the bytes of every tensor that the call holds at its peak, by name.

        Output included, arguments not, without a mask. Tensors may hold one row only.
        """
        ...
