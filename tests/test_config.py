"""The options, their words for what is accepted, and the files that hold their values."""

from dataclasses import asdict
from typing import Annotated

import pytest
from annotated_types import Ge, Gt, Lt

from tiled_attention.compose import ConfigError, composed
from tiled_attention.config import Dtype, Name
from tiled_attention.options import _type_name, options

GROUPS = ("implementations", "devices", "machines")
OPTIONS = options()


def leaves(values: object, prefix: str = "") -> dict[str, object]:
    """Return {dotted key: value} of everything that is no section."""
    if not isinstance(values, dict) or prefix.removesuffix(".") in GROUPS:
        return {prefix.removesuffix("."): values}
    return {
        key: inner
        for name, value in values.items()
        for key, inner in leaves(value, f"{prefix}{name}.").items()
    }


def test_every_option_has_a_value_and_every_value_is_an_option() -> None:
    explained = {key for key, accepted, _ in OPTIONS if accepted != "section"}
    followed = tuple(key for key, _, meaning in OPTIONS if "follows" in meaning)
    given = {key for key in leaves(asdict(composed([]))) if not key.startswith(followed)}
    assert given == {key for key in explained if not key.startswith(followed)}


def test_every_option_is_explained() -> None:
    keys = [key for key, _, _ in OPTIONS]
    assert len(keys) == len(set(keys))
    assert all(accepted and meaning for _, accepted, meaning in OPTIONS)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Annotated[int, Ge(1)], "integer >= 1"),
        (Annotated[float, Gt(0), Lt(1)], "number > 0 < 1"),
        (Annotated[int, Ge(0), Lt(2**63)], "integer >= 0 < 2**63"),
        (list[Annotated[int, Ge(1)]], "list of integer >= 1"),
        (Annotated[int, Ge(1)] | None, "integer >= 1, or null"),
        (Dtype, "float32 or bfloat16 or float16"),
        (Name, "text of letters, digits, '_', '.', '-'"),
        (bool, "true or false"),
    ],
)
def test_what_is_accepted_in_words(hint: object, words: str) -> None:
    assert _type_name(hint) == words


@pytest.mark.parametrize(
    ("key", "accepted"), [(key, accepted) for key, accepted, _ in OPTIONS if ">" in accepted]
)
def test_a_value_below_the_bound_is_refused(key: str, accepted: str) -> None:
    value = "[-1]" if accepted.startswith("list") else "-1"
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        composed([f"{key}={value}"])
