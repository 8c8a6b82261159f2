"""Every option as a reader's table; `python -m tiled_attention.options` makes config/README.md."""

from dataclasses import fields, is_dataclass
from typing import Any, Literal, get_args, get_type_hints

from annotated_types import Ge, Gt, Le, Lt
from pydantic import StringConstraints

from tiled_attention.config import Config


def options(cls: type = Config, prefix: str = "") -> list[tuple[str, str, str]]:
    """Return (key, type, meaning) of every option, depth first."""
    rows: list[tuple[str, str, str]] = []
    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):
        hint = hints[field.name]
        metadata = getattr(hint, "__metadata__", ())
        meaning = next((part for part in metadata if isinstance(part, str)), "")
        inner = get_args(hint)[0] if metadata else hint
        key = f"{prefix}{field.name}"
        if is_dataclass(inner):
            rows.append((key, "section", meaning or (inner.__doc__ or "").splitlines()[0]))
            follows = "follows" in meaning
            rows += [] if follows else options(inner, f"{key}.")  # type: ignore[arg-type]
        else:
            rows.append((key, _type_name(hint), meaning))
    return rows


def _type_name(hint: Any) -> str:
    """Return a reader's word for a type, bounds included."""
    arguments = get_args(hint)
    if hasattr(hint, "__metadata__"):
        bounds = [_bound(part) for part in hint.__metadata__]
        return " ".join([_type_name(arguments[0]), *filter(None, bounds)])
    if getattr(hint, "__origin__", None) is Literal:
        return " or ".join(map(str, arguments))
    if getattr(hint, "__origin__", None) is list:
        return f"list of {_type_name(arguments[0])}"
    if getattr(hint, "__origin__", None) is dict:
        return "group"
    if type(None) in arguments:
        return f"{_type_name(arguments[0])}, or null"
    words = {int: "integer", float: "number", bool: "true or false", str: "text"}
    return words.get(hint, getattr(hint, "__name__", str(hint)))


def _bound(part: Any) -> str:
    match part:
        case Ge(ge=least):
            return f">= {least}"
        case Gt(gt=least):
            return f"> {least}"
        case Le(le=most):
            return f"<= {most:,.0f}"
        case Lt(lt=most):
            return f"< {most if most < 2**62 else '2**63'}"
        case StringConstraints():
            return "of letters, digits, '_', '.', '-'"
    return ""


def readme() -> str:
    """Return the text of config/README.md."""
    lines = [
        "# Options",
        "",
        "Made from src/tiled_attention/config.py by `python -m tiled_attention.options`.",
        "Values are in config.yaml and experiment/; `implementation/` and `device/` hold one file",
        "for each implementation and device, all of which are taken unless an experiment or an",
        "override such as `implementation=[naive,tiled]` says otherwise.",
        "Any option can be overridden: `snakemake --cores 4 --config "
        "overrides='[\"cpu_timing.threads=2\"]'`,",
        "or `python -m tiled_attention.steps.cpu_timing cpu_timing.threads=2` for one step.",
        "",
        "| option | accepted | meaning |",
        "|---|---|---|",
    ]
    lines += [f"| `{key}` | {accepted} | {meaning} |" for key, accepted, meaning in options()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(readme(), end="")
