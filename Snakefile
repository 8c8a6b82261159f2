"""When does tiled attention pay, on this hardware, with this kernel, and is it right?

`snakemake --cores 4` answers for this machine. `--config platform=NAME` keeps the answer under
that name, `--config overrides='["a.b=c"]'` passes Hydra overrides on, and
`--config platforms='[a100,h200]'` runs the GPU's steps on those kinds of GPU.
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


onstart:
    print(experiment.about_gpus, file=sys.stderr)


wildcard_constraints:
    platform="[^/]+",
    version="[^/]+",


# Light work, done where Snakemake runs even if the rest goes to a cluster.
localrules:
    all,
    byte_arithmetic,
    crossover,
    figures,
    report,
    verdict,


rule all:
    """Every result, the report, and the verdict: fails where an implementation is wrong."""
    input:
        experiment.results,
        experiment.report,
        experiment.result("verdict"),


rule correctness:
    """Judge one implementation against FP64, on every timed shape and every hard case."""
    output:
        experiment.result("correctness"),
    log:
        experiment.log("correctness"),
    conda:
        "envs/tiled-attention.yaml"
    params:
        command=experiment.command,
    shell:
        "{params.command} > {log}"


# From here on, a rule is the first one with a step, inputs and outputs of its own.


# Run deliberately broken attentions through the same gate: each must be rejected.
use rule correctness as gate_sensitivity with:
    output:
        experiment.result("gate_sensitivity"),
    log:
        experiment.log("gate_sensitivity"),


# Count what naive and tiled attention hold at production lengths (Table 2).
use rule correctness as byte_arithmetic with:
    output:
        experiment.result("byte_arithmetic"),
    log:
        experiment.log("byte_arithmetic"),


# Measure what one implementation really holds at once.
use rule correctness as peak_memory with:
    output:
        experiment.result("peak_memory"),
    log:
        experiment.log("peak_memory"),


# Time every implementation that passed, alone on the machine (Table 3).
use rule correctness as cpu_timing with:
    input:
        experiment.read_by("cpu_timing"),
    output:
        experiment.result("cpu_timing"),
    log:
        experiment.log("cpu_timing"),
    threads: workflow.cores


# Read working sets from the first cache to main memory.
use rule correctness as cpu_bandwidth with:
    output:
        experiment.result("cpu_bandwidth"),
    log:
        experiment.log("cpu_bandwidth"),
    threads: workflow.cores


# Predict from which length on tiling pays, and confirm or refute it at longer ones.
use rule correctness as crossover with:
    input:
        experiment.read_by("crossover"),
    output:
        experiment.result("crossover"),
    log:
        experiment.log("crossover"),


# Compile the fused kernel for every GPU generation: registers, shared memory, spills.
use rule correctness as kernel_resources with:
    output:
        experiment.result("kernel_resources"),
    log:
        experiment.log("kernel_resources"),


rule gpu_correctness:
    """Judge one implementation on the GPU, on every shape timed there and every hard case."""
    output:
        experiment.result("gpu_correctness"),
    log:
        experiment.log("gpu_correctness"),
    # A GPU is dear: its steps come first.
    priority: 1
    conda:
        "envs/tiled-attention.yaml"
    resources:
        **experiment.gpu_resources,
        gpu=1,
    params:
        command=experiment.command,
    shell:
        "{params.command} > {log}"


# Time every implementation that passed on the GPU, alone on the machine.
use rule gpu_correctness as gpu_timing with:
    input:
        experiment.read_by("gpu_timing"),
    output:
        experiment.result("gpu_timing"),
    log:
        experiment.log("gpu_timing"),
    threads: workflow.cores


# Read working sets from shared memory to HBM.
use rule gpu_correctness as gpu_bandwidth with:
    output:
        experiment.result("gpu_bandwidth"),
    log:
        experiment.log("gpu_bandwidth"),
    threads: workflow.cores


# Find the length at which naive attention really runs out of memory.
use rule gpu_correctness as gpu_memory with:
    output:
        experiment.result("gpu_memory"),
    log:
        experiment.log("gpu_memory"),
    threads: workflow.cores


# Count the bytes that cross HBM's bus, with the hardware's own counters.
use rule gpu_correctness as gpu_traffic with:
    output:
        experiment.result("gpu_traffic"),
    log:
        experiment.log("gpu_traffic"),
    threads: workflow.cores


# Draw every figure, as SVG and PNG.
use rule correctness as figures with:
    input:
        experiment.read_by("figures"),
    output:
        experiment.figures,
    log:
        experiment.log("figures"),


# Write the tables, the verdicts on the claims and the exercises' answers.
use rule correctness as report with:
    input:
        experiment.read_by("report"),
    output:
        experiment.report,
    log:
        experiment.log("report"),


# Stop with a message where an implementation fails the gate, once the report is there.
use rule correctness as verdict with:
    input:
        ancient(experiment.report[0]),
        experiment.read_by("verdict"),
    output:
        experiment.result("verdict"),
    log:
        experiment.log("verdict"),
