"""From an implementation's options to the object that computes attention."""

from collections.abc import Mapping
from typing import Any

from hydra.utils import instantiate

from tiled_attention.implementations import Attention


def build(options: Mapping[str, Any], block_size: int | None = None) -> Attention:
    """Instantiate `_target_`; `block_size`, where given, replaces the implementation's own."""
    chosen = {key: value for key, value in options.items() if key != "_devices_"}
    if block_size is not None and "block_size" in chosen:
        chosen["block_size"] = block_size
    implementation: Attention = instantiate(chosen)
    return implementation
