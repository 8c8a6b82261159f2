"""The article's published figures, from article.yaml."""

from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf


@cache
def article() -> dict[str, Any]:
    """Return the published figures and claims."""
    values = OmegaConf.to_container(OmegaConf.load(Path(__file__).with_name("article.yaml")))
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}
