"""Figures: draws every figure of the report, as SVG and PNG."""

import pandas as pd
from matplotlib.figure import Figure

from tiled_attention.article import article
from tiled_attention.evidence import Evidence
from tiled_attention.gpu_runs import runs
from tiled_attention.gpu_tables import points_and_roof, with_gpu_tables
from tiled_attention.plan import Plan
from tiled_attention.plots.bandwidth import bandwidth, roofline
from tiled_attention.plots.crossover import crossover
from tiled_attention.plots.errors import errors
from tiled_attention.plots.gpu import gpu_platforms, gpu_rates
from tiled_attention.plots.memory import bytes_by_length, peak_memory
from tiled_attention.plots.style import looks, save
from tiled_attention.plots.timing import block_cost, ratio_by_length, time_by_length
from tiled_attention.stamps import write_stamp
from tiled_attention.store import write_bytes


def draw(evidence: Evidence) -> dict[str, Figure]:
    """Return every figure by name.

    Raises:
        StoreError: a result is missing or damaged.
    """
    config, tables = evidence.plan.config, evidence.tables
    look = looks(config.implementations)
    timings, fits = tables["cpu_timing"]["result"], tables["crossover"]
    counted = tables["byte_arithmetic"]
    gpu_runs = [(run.platform, run.result) for run in runs(evidence) if len(run.timed)]
    bandwidths = {
        it.stored.platform: it.stored.table() for it in evidence.everywhere("gpu_bandwidth")
    }
    beside = [
        (
            it.stored.platform + ("" if it.current else " (older version)"),
            it.stored.table(),
        )
        for it in evidence.beside("cpu_timing")
    ]
    return {
        "time_by_length": time_by_length(timings, look),
        "ratio_by_length": ratio_by_length(
            timings, pd.DataFrame(article()["timing"]), beside, look
        ),
        "crossover": crossover(fits, timings, look),
        "block_cost": block_cost(timings, fits["block_cost"], look),
        "bytes_by_length": bytes_by_length(
            counted["result"], counted["devices"], config.byte_arithmetic.table, look
        ),
        "peak_memory": peak_memory(tables["peak_memory"]["result"], look),
        "errors": errors(
            tables["correctness"]["result"], tables["gate_sensitivity"]["result"], look
        ),
        "gpu_rates": gpu_rates(gpu_runs[0] if gpu_runs else None, look),
        "gpu_platforms": gpu_platforms(gpu_runs, look),
        "bandwidth": bandwidth(tables["cpu_bandwidth"]["result"], bandwidths, look),
        "roofline": roofline(*points_and_roof(with_gpu_tables(evidence)), look),
    }


def render(plan: Plan) -> None:
    """Write every figure, and then the stamp that names their version.

    Raises:
        StoreError: a result is missing or damaged, or a file cannot be written.
    """
    figures = draw(Evidence(plan))
    files = plan.figure_files()
    for path in files:
        write_bytes(path, save(figures[path.stem], path.suffix[1:]))
    write_stamp(plan, "figures", files)


if __name__ == "__main__":
    from tiled_attention.program import hydra_program

    hydra_program(render, __doc__)
