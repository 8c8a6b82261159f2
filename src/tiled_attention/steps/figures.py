"""Figures: draws every figure of the report, as SVG and PNG."""

import pandas as pd
from matplotlib.figure import Figure

from tiled_attention.article import article
from tiled_attention.evidence import Evidence
from tiled_attention.plan import Plan
from tiled_attention.plots import crossover, errors, memory, timing
from tiled_attention.plots.style import save, styled
from tiled_attention.stamps import write_stamp
from tiled_attention.store import write_bytes


@styled
def draw(evidence: Evidence) -> dict[str, Figure]:
    """Return every figure by name.

    Raises:
        StoreError: a result is missing or damaged.
    """
    tables = evidence.tables
    timings = tables["cpu_timing"]["result"]
    sizes = tables["byte_arithmetic"]
    beside = [
        (
            it.stored.platform + ("" if it.current else " (older version)"),
            it.stored.table(),
        )
        for it in evidence.beside("cpu_timing")
    ]
    return {
        "time_by_length": timing.time_by_length(timings),
        "ratio_by_length": timing.ratio_by_length(
            timings, pd.DataFrame(article()["timing"]), beside
        ),
        "crossover": crossover.crossover(tables["crossover"], timings),
        "block_cost": timing.block_cost(timings, tables["crossover"]["block_cost"]),
        "bytes_by_length": memory.bytes_by_length(
            sizes["result"], sizes["devices"], evidence.plan.config.byte_arithmetic.table
        ),
        "peak_memory": memory.peak_memory(tables["peak_memory"]["result"]),
        "errors": errors.errors(
            tables["correctness"]["result"], tables["gate_sensitivity"]["result"]
        ),
    }


def render(plan: Plan) -> None:
    """Write every figure, and then the stamp that names their version."""
    figures = draw(Evidence(plan))
    files = plan.figure_files()
    for path in files:
        write_bytes(path, save(figures[path.stem], path.suffix[1:]))
    write_stamp(plan, "figures", files)


if __name__ == "__main__":
    from tiled_attention.program import hydra_program

    hydra_program(render, __doc__)
