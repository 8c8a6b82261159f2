"""The experiment's options: every key, its type, its bounds and what it means.

Values live in config/*.yaml; these dataclasses only check them. config/README.md is made from
this file by `python -m tiled_attention.config`.
"""

from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, get_args, get_type_hints

from annotated_types import Ge, Gt, Lt, MinLen
from pydantic import ConfigDict, StringConstraints
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid", strict=True)

Count = Annotated[int, Ge(1)]
Seed = Annotated[int, Ge(0), Lt(2**63)]
Positive = Annotated[float, Gt(0)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
Dtype = Literal["float32", "bfloat16", "float16"]
Counts = Annotated[list[Count], MinLen(1)]
Lengths = Annotated[list[Count], MinLen(1)]


@dataclass(config=STRICT, frozen=True)
class Problem:
    """The shape that is judged and timed at several lengths."""

    batch: Annotated[Count, "sequences in a batch"]
    heads: Annotated[Count, "attention heads"]
    head_dim: Annotated[Count, "elements of one query, key or value vector"]
    dtype: Annotated[Dtype, "element type of query, key, value and output"]
    causal: Annotated[bool, "hide keys later than the query"]


@dataclass(config=STRICT, frozen=True)
class BlockSweep:
    """One length timed with many block sizes: what does one more block cost?"""

    implementation: Annotated[Name, "the implementation swept"]
    length: Annotated[Count, "length of the sweep"]
    block_sizes: Annotated[list[Count], "block sizes; empty for no sweep"]


@dataclass(config=STRICT, frozen=True)
class Correctness:
    """The gate: which problems every implementation must get right before it is timed."""

    length: Annotated[Count, "length of the article's check"]
    seeds: Annotated[list[Seed], MinLen(1), "seeds of the check; the first is the article's row"]
    block_sizes: Annotated[Counts, "blocks of the check, for implementations that have them"]
    hard_case_dtypes: Annotated[list[Dtype], MinLen(1), "element types of the hard cases"]
    timed: Annotated[Problem, "the timed shape; follows `problem`"]
    timed_lengths: Annotated[Lengths, "lengths of the timed shape; follows the timing step"]
    timed_sweep: Annotated[BlockSweep, "the timed block sweep; follows the timing step"]
    max_tflop: Annotated[Positive, "work limit of one FP64 reference; longer cases are skipped"]


@dataclass(config=STRICT, frozen=True)
class GateSensitivity:
    """Deliberately broken implementations that the gate must reject."""

    dtypes: Annotated[list[Dtype], MinLen(1), "element types in which each fault is planted"]
    seeds: Annotated[list[Seed], MinLen(1), "seeds of the problems"]


@dataclass(config=STRICT, frozen=True)
class Table:
    """Lengths and the shape at which sizes are counted."""

    lengths: Annotated[Lengths, "rows of the table"]
    batch: Annotated[Count, "sequences in a batch"]
    heads: Annotated[Count, "attention heads"]
    dtype: Annotated[Dtype, "element type of the scores"]
    block_size: Annotated[Count, "keys (and query rows) in one block"]


@dataclass(config=STRICT, frozen=True)
class Fit:
    """The question: up to which length do the naive scores fit in a device's memory?"""

    heads: Annotated[Counts, "numbers of heads for which it is asked"]
    batch: Annotated[Count, "sequences in a batch"]
    dtype: Annotated[Dtype, "element type of the scores"]


@dataclass(config=STRICT, frozen=True)
class ByteArithmetic:
    """Exact sizes of what naive and tiled attention hold."""

    check: Annotated[Table, "the shape of the correctness check"]
    table: Annotated[Table, "production lengths"]
    fit: Annotated[Fit, "largest length by device"]


@dataclass(config=STRICT, frozen=True)
class PeakMemory:
    """Measured peak of all live tensors, beside each implementation's own account."""

    problem: Annotated[Problem, "the measured shape; follows `problem`"]
    lengths: Annotated[Lengths, "lengths that are measured"]


@dataclass(config=STRICT, frozen=True)
class Sampling:
    """How many rounds of A B C A B C ... are timed at each length."""

    min_rounds: Annotated[Count, "at least so many"]
    max_rounds: Annotated[Count, "at most so many"]
    seconds: Annotated[Positive, "in between, until so many seconds have gone"]
    confidence: Annotated[float, Gt(0), Lt(1), "level of every interval"]
    resamples: Annotated[Count, "bootstrap resamples behind an interval"]


@dataclass(config=STRICT, frozen=True)
class CpuTiming:
    """Wall-clock on the CPU."""

    problem: Annotated[Problem, "the timed shape; follows `problem`"]
    lengths: Annotated[Lengths, "lengths that are timed"]
    block_sweep: Annotated[BlockSweep, "cost of one more block"]
    threads: Annotated[Count | None, "torch threads; null for all cores this process may use"]
    seed: Annotated[Seed, "of the random inputs, which are fresh in each round"]
    sampling: Annotated[Sampling, "when to stop"]


@dataclass(config=STRICT, frozen=True)
class Crossover:
    """At which length does an implementation become faster than the baseline?"""

    baseline: Annotated[Name, "the implementation that must be overtaken"]
    fitted_lengths: Annotated[Lengths, "lengths that the cost models see"]
    confidence: Annotated[float, Gt(0), Lt(1), "level of every interval"]
    resamples: Annotated[Annotated[int, Ge(100)], "bootstrap refits behind an interval"]
    seed: Annotated[Seed, "of the bootstrap"]


@dataclass(config=STRICT, frozen=True)
class Device:
    """A device whose memory bounds the length."""

    name: Annotated[str, MinLen(1), "as it stands in the report"]
    memory: Annotated[Count, "nominal size; read as GB (1e9 bytes) and as GiB (2**30)"]


@dataclass(config=STRICT, frozen=True)
class Config:
    """The whole experiment."""

    platform: Annotated[Name, "where results and reports are kept: results/<platform>/"]
    subject: Annotated[Name | None, "one implementation, for steps that take one; null for all"]
    problem: Annotated[Problem, "the article's shape"]
    implementations: Annotated[dict[Name, dict[str, Any]], MinLen(1), "config/implementation/"]
    devices: Annotated[dict[Name, Device], "config/device/"]
    correctness: Correctness
    gate_sensitivity: GateSensitivity
    byte_arithmetic: ByteArithmetic
    peak_memory: PeakMemory
    cpu_timing: CpuTiming
    crossover: Crossover


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
        return " or ".join(arguments)
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
        "Made from src/tiled_attention/config.py by `python -m tiled_attention.config`.",
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
