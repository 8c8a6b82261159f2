"""Deliberately broken attentions: each one edit of tiled.py that the gate must reject.

A mutant is made by replacing one piece of the source of `tiled`, so it is always the real
kernel with one line wrong, and an edit that no longer applies is an error.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tiled_attention.implementations import Attention, tiled


@dataclass(frozen=True)
class Mutant:
    """One planted fault: `before` stands once in tiled.py and becomes `after`."""

    name: str
    fault: str
    before: str
    after: str

    def build(self, options: Mapping[str, Any]) -> Attention:
        """Return the broken implementation.

        Raises:
            ValueError: `before` does not stand exactly once in tiled.py.
        """
        source = inspect.getsource(tiled)
        if source.count(self.before) != 1:
            raise ValueError(f"mutant {self.name!r}: {self.before!r} is not once in tiled.py")
        module = ModuleType(f"{tiled.__name__}_{self.name}")
        exec(
            compile(source.replace(self.before, self.after), tiled.__file__, "exec"), vars(module)
        )
        broken: Attention = module.Tiled(**options)
        return broken


MUTANTS = (
    Mutant(
        name="dropped precision",
        fault="scores are rounded to BF16",
        before="scores = product(query, key_block.mT) * scale",
        after="scores = (product(query, key_block.mT) * scale).bfloat16().to(running_max.dtype)",
    ),
    Mutant(
        name="wrong causal mask",
        fault="each query also sees the key after its own",
        before="apply_mask_(scores, range(length_q), columns, lengths, causal, mask)",
        after="apply_mask_(scores, range(1, length_q + 1), columns, lengths, causal, mask)",
    ),
    Mutant(
        name="wrong softmax axis",
        fault="probabilities are normalised over queries instead of keys",
        before="probabilities = torch.exp(scores - shift)",
        after="probabilities = torch.softmax(scores, dim=-2)",
    ),
)
