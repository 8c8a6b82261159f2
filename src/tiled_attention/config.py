"""The experiment's options: every key, its type, its bounds and what it means.

Values live in config/*.yaml; these dataclasses only check them. config/README.md is made from
this file by `python -m tiled_attention.options`.
"""

from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator, ConfigDict, StringConstraints
from pydantic.dataclasses import dataclass

STRICT = ConfigDict(extra="forbid", strict=True)

Item = TypeVar("Item")


def distinct(values: list[Item]) -> list[Item]:
    """Return the values; raises ValueError for one that is given more than once."""
    repeated = sorted({value for value in values if values.count(value) > 1}, key=str)
    if repeated:
        raise ValueError(f"{repeated} given more than once")
    return values


Count = Annotated[int, Ge(1)]
Seed = Annotated[int, Ge(0), Lt(2**63)]
Positive = Annotated[float, Gt(0), Le(1e6)]
Level = Annotated[float, Gt(0), Lt(1)]
Resamples = Annotated[int, Ge(100), Le(1_000_000)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)]
Names = Annotated[list[Name], AfterValidator(distinct)]
Dtype = Literal["float32", "bfloat16", "float16"]
Counts = Annotated[list[Count], MinLen(1), AfterValidator(distinct)]
CountsOrNone = Annotated[list[Count], AfterValidator(distinct)]
Seeds = Annotated[list[Seed], MinLen(1), AfterValidator(distinct)]
Dtypes = Annotated[list[Dtype], MinLen(1), AfterValidator(distinct)]
Capabilities = Annotated[list[Literal[80, 90, 100]], MinLen(1), AfterValidator(distinct)]
PaddedHeadDims = Annotated[
    list[Literal[16, 32, 64, 128, 256]], MinLen(1), AfterValidator(distinct)
]


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
    block_sizes: Annotated[CountsOrNone, "block sizes; empty for no sweep"]


@dataclass(config=STRICT, frozen=True)
class Correctness:
    """The gate: which problems every implementation must get right before it is timed."""

    length: Annotated[Count, "length of the article's check"]
    seeds: Annotated[Seeds, "seeds of the check; the first is the article's row"]
    block_sizes: Annotated[Counts, "blocks of the check, for implementations that have them"]
    hard_case_dtypes: Annotated[Dtypes, "element types of the hard cases"]
    timed: Annotated[Problem, "the timed shape; follows `problem`"]
    timed_lengths: Annotated[Counts, "lengths of the timed shape; follows the timing step"]
    timed_sweep: Annotated[BlockSweep, "the timed block sweep; follows the timing step"]
    max_tflop: Annotated[Positive, "work limit of one FP64 reference; longer cases are skipped"]


@dataclass(config=STRICT, frozen=True)
class GateSensitivity:
    """Deliberately broken implementations that the gate must reject."""

    dtypes: Annotated[Dtypes, "element types in which each fault is planted"]
    seeds: Annotated[Seeds, "seeds of the problems"]


@dataclass(config=STRICT, frozen=True)
class Table:
    """Lengths and the shape at which sizes are counted."""

    lengths: Annotated[Counts, "rows of the table"]
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
    lengths: Annotated[Counts, "lengths that are measured"]


@dataclass(config=STRICT, frozen=True)
class Sampling:
    """How many rounds of A B C A B C ... are timed at each length."""

    min_rounds: Annotated[Count, "at least so many"]
    max_rounds: Annotated[Count, "at most so many"]
    seconds: Annotated[Positive, "in between, until so many seconds have gone"]
    confidence: Annotated[Level, "level of every interval"]
    resamples: Annotated[Resamples, "bootstrap resamples behind an interval"]


@dataclass(config=STRICT, frozen=True)
class CpuTiming:
    """Wall-clock on the CPU."""

    problem: Annotated[Problem, "the timed shape; follows `problem`"]
    lengths: Annotated[Counts, "lengths that are timed"]
    block_sweep: Annotated[BlockSweep, "cost of one more block"]
    threads: Annotated[Count | None, "torch threads; null for all cores this process may use"]
    max_seconds: Annotated[Positive, "a length whose min_rounds would take longer is skipped"]
    seed: Annotated[Seed, "of the random inputs, which are fresh in each round"]
    sampling: Annotated[Sampling, "when to stop"]


@dataclass(config=STRICT, frozen=True)
class Grid:
    """Shapes of equal work: batch = tokens / length, heads = hidden / head_dim."""

    lengths: Annotated[Counts, "sequence lengths"]
    tokens: Annotated[Count, "batch x length"]
    head_dims: Annotated[Counts, "elements of one query, key or value vector"]
    hidden: Annotated[Count, "heads x head_dim"]
    causal: Annotated[list[bool], MinLen(1), "hide keys later than the query"]
    dtype: Annotated[Dtype, "element type"]


@dataclass(config=STRICT, frozen=True)
class GpuCorrectness:
    """The gate on the GPU."""

    hard_case_dtypes: Annotated[Dtypes, "element types of the hard cases"]
    grid: Annotated[Grid, "the timed shapes; follows the timing step"]
    problem: Annotated[Problem, "the article's shape; follows `problem`"]
    problem_lengths: Annotated[Counts, "its timed lengths; follows the timing step"]
    max_tflop: Annotated[Positive, "work limit of one FP64 reference; longer cases are skipped"]


@dataclass(config=STRICT, frozen=True)
class GpuTiming:
    """Device time on the GPU."""

    grid: Annotated[Grid, "shapes of equal work"]
    problem: Annotated[Problem, "the article's shape; follows `problem`"]
    problem_lengths: Annotated[Counts, "its lengths"]
    matrix_size: Annotated[Count, "rows and columns of the product that measures the matrix rate"]
    seed: Annotated[Seed, "of the random inputs, which are fresh in each round"]
    sampling: Annotated[Sampling, "when to stop, for each shape"]


@dataclass(config=STRICT, frozen=True)
class Bandwidth:
    """Read bandwidth by working set."""

    working_sets_kib: Annotated[Counts, "read by one core or multiprocessor, in KiB"]
    samples: Annotated[Count, "of each working set"]
    confidence: Annotated[Level, "level of every interval"]
    resamples: Annotated[Resamples, "bootstrap resamples behind an interval"]


@dataclass(config=STRICT, frozen=True)
class GpuMemory:
    """The length at which naive attention really runs out."""

    heads: Annotated[Counts, "numbers of heads for which it is sought"]
    batch: Annotated[Count, "sequences in a batch"]
    head_dim: Annotated[Count, "elements of one query, key or value vector"]
    dtype: Annotated[Dtype, "element type"]
    step: Annotated[Count, "it is found to within so many tokens"]


@dataclass(config=STRICT, frozen=True)
class GpuTraffic:
    """Bytes between HBM and the chip, by hardware counters."""

    implementations: Annotated[Names, "whose calls are counted"]
    grid: Annotated[Grid, "the timed shapes; follows the timing step"]
    lengths: Annotated[Counts, "which of its lengths"]
    head_dim: Annotated[Count, "which of its head_dims"]


@dataclass(config=STRICT, frozen=True)
class KernelResources:
    """What the Triton kernel takes of a GPU, found by compiling it; no GPU is needed."""

    capabilities: Annotated[Capabilities, "compute capabilities: 90 for 9.0"]
    dtypes: Annotated[Dtypes, "element types"]
    head_dims: Annotated[PaddedHeadDims, "elements of one query, key or value vector"]
    causal: Annotated[list[bool], MinLen(1), "hide keys later than the query"]


@dataclass(config=STRICT, frozen=True)
class Crossover:
    """At which length does an implementation become faster than naive attention?"""

    fitted_lengths: Annotated[Counts, "lengths that the cost models see"]
    confidence: Annotated[Level, "level of every interval"]
    resamples: Annotated[Resamples, "bootstrap refits behind an interval"]
    seed: Annotated[Seed, "of the bootstrap"]


@dataclass(config=STRICT, frozen=True)
class Device:
    """A device whose memory bounds the length."""

    name: Annotated[str, MinLen(1), "as it stands in the report"]
    memory: Annotated[Count, "nominal size; read as GB (1e9 bytes) and as GiB (2**30)"]


@dataclass(config=STRICT, frozen=True)
class Machine:
    """A platform with a GPU: which one it must be, and how a cluster is asked for it."""

    device: Annotated[str, MinLen(1), "part of the GPU's name, as the driver gives it"]
    resources: Annotated[dict[str, str | int], "resources of the GPU's rules, for the executor"]


@dataclass(config=STRICT, frozen=True)
class Config:
    """The whole experiment."""

    platform: Annotated[Name, "where results and reports are kept: results/<platform>/"]
    subject: Annotated[Name | None, "one implementation, for steps that take one; null for all"]
    platforms: Annotated[
        Names, "where the GPU's steps run, by config/machine/; empty: on the platform itself"
    ]
    gpu: Annotated[
        Literal["cuda", "interpreted", "none"] | None,
        "what the GPU's steps run on; null: a GPU where there is one",
    ]
    problem: Annotated[Problem, "the article's shape"]
    implementations: Annotated[dict[Name, dict[str, Any]], MinLen(1), "config/implementation/"]
    devices: Annotated[dict[Name, Device], "config/device/"]
    machines: Annotated[dict[Name, Machine], "config/machine/"]
    correctness: Correctness
    gate_sensitivity: GateSensitivity
    byte_arithmetic: ByteArithmetic
    peak_memory: PeakMemory
    cpu_timing: CpuTiming
    cpu_bandwidth: Bandwidth
    gpu_correctness: GpuCorrectness
    gpu_timing: GpuTiming
    gpu_bandwidth: Bandwidth
    gpu_memory: GpuMemory
    gpu_traffic: GpuTraffic
    kernel_resources: KernelResources
    crossover: Crossover
