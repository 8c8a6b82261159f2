"""When does tiled attention pay, on this hardware, with this kernel, and is it right?

`snakemake --cores 4` answers for this machine. `--config platform=NAME` keeps the answer under
that name, `--config overrides='["a.b=c"]'` passes Hydra overrides on.
"""

import os
import sys
from pathlib import Path


workdir: workflow.basedir


sys.path.insert(0, str(Path(workflow.basedir, "src")))
from tiled_attention import workflow as tiled

# The jobs run this checkout's code, with this environment's Python.
os.environ.update(tiled.job_environment())

experiment = tiled.Experiment(config, cores=workflow.cores)
tiled.clear_traces_of_killed_runs()


rule all:
    """Every result, the report, and the verdict: fails where an implementation is wrong."""
    input:
        experiment.results,
        experiment.report,
        experiment.result("verdict"),
    localrule: True


rule correctness:
    """Judge one implementation against FP64, on every timed shape and every hard case."""
    output:
        experiment.result("correctness"),
    log:
        experiment.log("correctness"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.correctness {params.arguments} > {log}"


rule gate_sensitivity:
    """Run deliberately broken attentions through the same gate: each must be rejected."""
    output:
        experiment.result("gate_sensitivity"),
    log:
        experiment.log("gate_sensitivity"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.gate_sensitivity {params.arguments} > {log}"


rule byte_arithmetic:
    """Count what naive and tiled attention hold at production lengths (Table 2)."""
    output:
        experiment.result("byte_arithmetic"),
    log:
        experiment.log("byte_arithmetic"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.byte_arithmetic {params.arguments} > {log}"


rule peak_memory:
    """Measure what one implementation really holds at once."""
    output:
        experiment.result("peak_memory"),
    log:
        experiment.log("peak_memory"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.peak_memory {params.arguments} > {log}"


rule cpu_timing:
    """Time every implementation that passed, alone on the machine (Table 3)."""
    input:
        experiment.read_by("cpu_timing"),
    output:
        experiment.result("cpu_timing"),
    log:
        experiment.log("cpu_timing"),
    conda:
        "envs/tiled-attention.yaml"
    threads: workflow.cores
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.cpu_timing {params.arguments} > {log}"


rule crossover:
    """Predict from which length on tiling pays, and confirm or refute it at longer ones."""
    input:
        experiment.read_by("crossover"),
    output:
        experiment.result("crossover"),
    log:
        experiment.log("crossover"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.crossover {params.arguments} > {log}"


rule figures:
    """Draw every figure, as SVG and PNG."""
    input:
        experiment.read_by("figures"),
    output:
        experiment.figures,
    log:
        experiment.log("figures"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.figures {params.arguments} > {log}"


rule report:
    """Write the tables, the verdicts on the claims and the exercises' answers."""
    input:
        experiment.read_by("report"),
    output:
        experiment.report,
    log:
        experiment.log("report"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.report {params.arguments} > {log}"


rule verdict:
    """Stop with a message where an implementation fails the gate, once the report is there."""
    input:
        ancient(experiment.report[0]),
        experiment.read_by("verdict"),
    output:
        experiment.result("verdict"),
    log:
        experiment.log("verdict"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        arguments=experiment.arguments,
    shell:
        "python -m tiled_attention.steps.verdict {params.arguments} > {log}"
