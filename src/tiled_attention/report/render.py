"""From evidence to report.md and a self-contained report.html; the same bytes every time."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from tiled_attention.article import article
from tiled_attention.evidence import Evidence
from tiled_attention.gpu_runs import runs
from tiled_attention.gpu_tables import traffic, with_gpu_tables
from tiled_attention.pipeline import MEASURED
from tiled_attention.report import exercises, gpu, tables, threshold
from tiled_attention.report.claims import RULES
from tiled_attention.sizes import ITEM_BYTES
from tiled_attention.store import shown

FIXED_TOLERANCES = (1e-5, 1e-2)  # the article's, and one in common use


def markdown(evidence: Evidence) -> str:
    """Return report.md.

    Raises:
        StoreError: a result is missing or damaged.
    """
    environment = _environment()
    return environment.get_template("report.md.j2").render(**_context(evidence))


def html(text: str, figures: Path) -> str:
    """Return the report as one page: styles and figures inside, nothing fetched.

    `figures` is the folder that the text's relative image paths start from.
    """
    parser = MarkdownIt("commonmark", {"html": True}).enable("table")

    def image(
        renderer: RendererHTML,
        tokens: Sequence[Token],
        index: int,
        options: OptionsDict,
        env: EnvType,
    ) -> str:
        path = figures / str(tokens[index].attrs["src"])
        content = base64.b64encode(path.read_bytes()).decode()
        source = f"data:image/svg+xml;base64,{content}"
        return f'<span class="figure"><img src="{source}" alt="{tokens[index].content}"></span>'

    def table_open(*_: Any) -> str:
        return '<div class="table"><table>\n'

    def table_close(*_: Any) -> str:
        return "</table></div>\n"

    parser.add_render_rule("image", image)
    parser.add_render_rule("table_open", table_open)
    parser.add_render_rule("table_close", table_close)
    title = text.partition("\n")[0].lstrip("# ").replace("`", "")
    page = _environment(autoescape=True).get_template("page.html.j2")
    return page.render(title=title, body=parser.render(text))


def _environment(autoescape: bool = False) -> Environment:
    environment = Environment(
        loader=PackageLoader("tiled_attention.report", "."),
        undefined=StrictUndefined,
        autoescape=autoescape,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "sci": lambda value, digits=2: "-" if pd.isna(value) else f"{value:.{digits}e}",
        "number": lambda value, digits: "-" if pd.isna(value) else f"{value:.{digits}f}",
        "mb": lambda value: f"{value / 1e6:,.2f}",
        "gb": lambda value: f"{value / 1e9:,.2f}",
    }
    return environment


def _context(evidence: Evidence) -> dict[str, Any]:
    """Gather everything that the template names."""
    plan = evidence.plan
    own = with_gpu_tables(evidence)
    gpu_runs = runs(evidence)
    published = article()
    stored = [evidence.stored(it) for step in MEASURED for it in evidence.planned_here(step)]
    timing = next(it for it in stored if it.step == "cpu_timing")
    gate, gpu_gate = (
        tables.gate_summary(own, step) for step in ("correctness", "gpu_correctness")
    )
    limits = tables.device_limits(own)
    held = threshold.held_per_score_matrix(own)
    fit = plan.config.byte_arithmetic.fit
    crossover = own["crossover"]
    return {
        "platform": plan.platform,
        "machine": timing.provenance["machine"],
        "software": timing.provenance["software"],
        "threads": int(own["cpu_timing"]["result"]["threads"].iloc[0]),
        "confidence": plan.config.cpu_timing.sampling.confidence,
        "measured_from": min(it.provenance["started"] for it in stored),
        "measured_to": max(it.provenance["ended"] for it in stored),
        "command": plan.command,
        "sources": {
            step: [
                {"folder": shown(it.folder), "version": it.version}
                for it in stored
                if it.step == step
            ]
            for step in MEASURED
        },
        "claims": [
            (claim, published["claims"][claim], rule(own, published))
            for claim, rule in RULES.items()
        ],
        "check": tables.correctness_check(own, published),
        "gate": gate,
        "gpu_gate": gpu_gate,
        "failures": [row for row in (*gate, *gpu_gate) if row["failed"]],
        "sensitivity": tables.sensitivity(own, FIXED_TOLERANCES),
        "fixed": FIXED_TOLERANCES,
        "times": tables.cpu_times(own, published),
        "block_size": plan.config.implementations.get("tiled", {}).get("block_size", "-"),
        "ratios": tables.ratios(own["cpu_timing"]["result"]),
        "recorded": tables.recorded_ratios(evidence),
        "gpu_runs": gpu_runs,
        "gpu_shapes": gpu.by_shape,
        "gpu_conditions": gpu.conditions,
        "gpu_not_timed": gpu.not_timed,
        "two_by_two": gpu.two_by_two(own, gpu_runs),
        "cpu_bandwidth": own["cpu_bandwidth"]["result"].to_dict("records"),
        "gpu_bandwidth": _records(own, "gpu_bandwidth"),
        "gpu_memory": _records(own, "gpu_memory"),
        "gpu_traffic": traffic(own).to_dict("records"),
        "no_traffic": gpu.not_counted(evidence),
        "held": held,
        "thresholds": threshold.speed_thresholds(own, gpu_runs),
        "bounds": threshold.bounds(own),
        "score_passes": threshold.SCORE_PASSES,
        "fit_heads": fit.heads,
        "memory_limits": threshold.memory_limits(
            plan.config.devices, fit.heads, ITEM_BYTES[fit.dtype], held["factor"] if held else 1
        ),
        "kernel_resources": own["kernel_resources"]["result"].to_dict("records"),
        "fitted_on": ", ".join(map(str, plan.config.crossover.fitted_lengths)),
        "crossover": exercises.cpu_crossover(own),
        "terms": crossover.get("terms", pd.DataFrame()).to_dict("records"),
        "residuals": crossover.get("residuals", pd.DataFrame()).to_dict("records"),
        "table": plan.config.byte_arithmetic.table,
        "sizes": tables.production_sizes(own, published),
        "peaks": tables.peak_accounts(own),
        "disagreement": tables.largest_disagreement(own),
        "limits": limits,
        "limit_columns": list(limits[0]["first"]) if limits else [],
        "exercise_1": exercises.another_seed(own, published),
        "exercise_2": exercises.outgrows_a100(own, published),
        "results": [
            {
                "step": it.step,
                "subject": it.provenance["subject"],
                "version": it.version,
                "ended": it.provenance["ended"],
                **it.provenance["git"],
            }
            for it in stored
        ],
    }


def _records(tables: Any, step: str) -> list[dict[str, Any]]:
    """Return the rows of a GPU step that have a number; none where there was no GPU."""
    result = tables.get(step, {}).get("result", pd.DataFrame({"status": []}))
    rows: list[dict[str, Any]] = result[result["status"] == "ok"].to_dict("records")
    return rows
