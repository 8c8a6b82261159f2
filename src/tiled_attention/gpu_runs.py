"""GPU timings as a figure or a report draws on them: this platform's, then the others'."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from tiled_attention.evidence import Evidence
from tiled_attention.plan import Recorded
from tiled_attention.store import shown


@dataclass(frozen=True)
class GpuRun:
    """One platform's GPU timing, on this run's version of the kernels or an older one."""

    recorded: Recorded

    @property
    def platform(self) -> str:
        """The platform's name."""
        return self.recorded.stored.platform

    @property
    def current(self) -> bool:
        """Whether it was measured with the sources and options of this run."""
        return self.recorded.current

    @property
    def version(self) -> str:
        """Version of the result."""
        return self.recorded.stored.version

    @property
    def folder(self) -> str:
        """Folder of the result, as seen from the repository's root."""
        return shown(self.recorded.stored.folder)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What is known of the measurement."""
        return self.recorded.stored.provenance

    @property
    def device(self) -> Mapping[str, Any] | None:
        """Name, memory, driver and clocks of the GPU; None under Triton's interpreter."""
        gpus = self.provenance.get("machine", {}).get("gpus", [])
        return gpus[0] if gpus else None

    @property
    def interpreted(self) -> bool:
        """Whether Triton's interpreter stood in for a GPU."""
        return bool(self.provenance.get("options", {}).get("interpreted"))

    @cached_property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """Every table of the result."""
        return self.recorded.stored.tables()

    @cached_property
    def result(self) -> pd.DataFrame:
        """One row a shape and implementation, the rate with an interval too."""
        return with_rate_interval(self.tables["result"])

    @property
    def timed(self) -> pd.DataFrame:
        """The rows that hold a time."""
        return self.result[self.result["status"] == "ok"]


def runs(evidence: Evidence) -> list[GpuRun]:
    """Return this platform's GPU timing, if any, and then those of the others."""
    return [GpuRun(it) for it in evidence.everywhere("gpu_timing")]


def with_rate_interval(result: pd.DataFrame) -> pd.DataFrame:
    """Return the table with the rate at both ends of the time's interval, in TFLOP/s."""
    work = result["tflops"].astype(float) * result["median_ms"].astype(float)
    return result.assign(
        tflops_low=work / result["ci_high_ms"].astype(float),
        tflops_high=work / result["ci_low_ms"].astype(float),
    )
