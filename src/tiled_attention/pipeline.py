"""Which steps there are, in the order of the story, and which figures are drawn of them."""

from dataclasses import dataclass

from tiled_attention.sources import PACKAGE


@dataclass(frozen=True)
class Step:
    """What a step's numbers depend on, besides its own source."""

    name: str
    options: tuple[str, ...] = ()  # sections of the configuration
    implementations: str = "none"  # none, each (one result for each), or all (in one result)
    device: str = "cpu"  # which implementations, and whether it is planned without a GPU
    reads: tuple[str, ...] = ()  # steps whose results it reads

    @property
    def module(self) -> str:
        """The module that holds the step."""
        return f"{PACKAGE}.steps.{self.name}"


STEPS = {
    step.name: step
    for step in (
        Step("correctness", options=("correctness",), implementations="each"),
        Step("gate_sensitivity", options=("gate_sensitivity",)),
        Step("byte_arithmetic", options=("byte_arithmetic", "devices")),
        Step("peak_memory", options=("peak_memory",), implementations="each"),
        Step(
            "cpu_timing",
            options=("cpu_timing",),
            implementations="all",
            reads=("correctness",),
        ),
        Step("cpu_bandwidth", options=("cpu_bandwidth",)),
        Step("crossover", options=("crossover",), reads=("cpu_timing",)),
        Step(
            "gpu_correctness", options=("gpu_correctness",), implementations="each", device="cuda"
        ),
        Step(
            "gpu_timing",
            options=("gpu_timing",),
            implementations="all",
            reads=("gpu_correctness",),
            device="cuda",
        ),
        Step("gpu_bandwidth", options=("gpu_bandwidth",), device="cuda"),
        Step("gpu_memory", options=("gpu_memory",), device="cuda"),
        Step("gpu_traffic", options=("gpu_traffic",), implementations="all", device="cuda"),
        Step("kernel_resources", options=("kernel_resources",)),
        Step("verdict", reads=("correctness", "gate_sensitivity", "gpu_correctness")),
    )
}
MEASURED = tuple(name for name in STEPS if name != "verdict")
RENDERED = {
    "figures": Step("figures", reads=MEASURED),
    "report": Step("report", reads=(*MEASURED, "figures")),
}
FIGURES = (
    "time_by_length",
    "ratio_by_length",
    "crossover",
    "block_cost",
    "bytes_by_length",
    "peak_memory",
    "errors",
    "gpu_rates",
    "gpu_platforms",
    "bandwidth",
    "roofline",
)
# Shown of other platforms too.
BESIDE = ("cpu_timing", "crossover", "gpu_timing", "gpu_bandwidth", "gpu_memory", "gpu_traffic")
