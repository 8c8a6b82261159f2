"""Turns a step's function into a Hydra program: plan, read, run, write, tell."""

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import hydra
import pandas as pd
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from tiled_attention import gpu, provenance, store
from tiled_attention.compose import CONFIG_DIR, ConfigError, checked, composed, register_groups
from tiled_attention.errors import StepError
from tiled_attention.evidence import put_together
from tiled_attention.pipeline import STEPS
from tiled_attention.plan import INTERPRETED, Plan, Planned
from tiled_attention.sources import SourceError

Tables = dict[str, pd.DataFrame]
Measure = Callable[[dict[str, Any], Mapping[str, Tables]], Tables]

ROWS_SHOWN = 40

log = logging.getLogger(__name__)


def run_step(name: str, measure: Measure, doc: str | None) -> None:
    """Run the step `name` as a program: one result, or one for each implementation.

    `measure` takes the step's options (and the implementations it uses) and the tables of the
    results it reads, by step; it returns the tables to store. `doc` heads the --help text.
    """

    def body(plan: Plan) -> None:
        results = plan.results[name]
        if STEPS[name].device == "cuda" and not results:
            raise StepError("there is no GPU here; with gpu=cuda one is used, or else it fails")
        if STEPS[name].implementations == "each" and plan.config.subject:
            results = tuple(r for r in results if r.subject == plan.config.subject)
        for planned in results:
            stored = _measure_once(plan, planned, measure)
            show(stored)

    hydra_program(body, doc)


def show(stored: store.Stored) -> None:
    """Print the first rows of each table; a reader such as `head` may stop listening."""
    try:
        for name, table in stored.tables().items():
            print(f"{store.shown(stored.folder)}/{name}.csv")
            print(table.head(ROWS_SHOWN).to_string(index=False), "\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def hydra_program(body: Callable[[Plan], None], doc: str | None) -> None:
    """Run `body` with the plan that the command line's overrides make.

    Every error that a user can mend ends the process with one line and exit code 2.
    """
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stdout,
        format="%(asctime)s %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    arguments = sys.argv[1:]
    if {"-h", "--help"} & set(arguments):
        print(doc)
    try:
        if {"-m", "--multirun"} & set(arguments):
            raise ConfigError("--multirun: Snakemake runs many; a step runs one configuration")
        composed(_overrides(arguments))  # for its one-line errors, before Hydra's own
        register_groups()

        @hydra.main(config_path=str(CONFIG_DIR), config_name="config", version_base="1.3")
        def program(node: DictConfig) -> None:
            try:
                config = checked(OmegaConf.to_container(node, resolve=True))
                body(Plan(config, tuple(HydraConfig.get().overrides.task)))
            except (ConfigError, SourceError, StepError, store.StoreError) as error:
                _stop(error)

        program()
    except (ConfigError, SourceError) as error:
        _stop(error)


def _overrides(arguments: list[str]) -> list[str]:
    """Return the arguments that are overrides; beside flags, those that look like one."""
    if not any(argument.startswith("-") for argument in arguments):
        return arguments
    return [each for each in arguments if each[0] == "~" or ("=" in each and each[0] != "-")]


def _measure_once(plan: Plan, planned: Planned, measure: Measure) -> store.Stored:
    """Return the planned result, measuring it unless it is there already."""
    folder = planned.folder
    if store.exists(folder):
        log.info("%s is there already", store.shown(folder))
        return store.Stored(folder)
    machine = plan.config.machines.get(planned.platform)
    on_gpu = STEPS[planned.step].device == "cuda" and not planned.options.get(INTERPRETED)
    if on_gpu and machine:
        gpu.require_named(machine.device, planned.platform)
    inputs = _read(planned)
    started = provenance.now()
    log.info("%s begins on node %s", store.shown(folder), socket.gethostname())
    tables = measure(planned.options, inputs)
    record = {
        "step": planned.step,
        "version": planned.version,
        "platform": planned.platform,
        "subject": planned.subject,
        "started": started,
        "ended": provenance.now(),
        "machine": provenance.machine(),
        "software": provenance.software(),
        "git": provenance.source_control(),
        "options": planned.options,
        "reads": [f"{result.step}/{result.version}" for result in planned.reads],
        "sources": planned.sources,
    }
    stored = store.write(folder, tables, record)
    log.info("%s is written", store.shown(folder))
    return stored


def _read(planned: Planned) -> dict[str, Tables]:
    """Return the tables of the results that are read, those of one step put together."""
    read = []
    for result in planned.reads:
        if not store.exists(result.folder):
            raise store.StoreError(
                f"{planned.step} reads {store.shown(result.folder)}, which is not there: run "
                f"`python -m {STEPS[result.step].module}` with the same overrides first"
            )
        read.append(store.Stored(result.folder))
    return put_together(read)


def _stop(error: Exception) -> NoReturn:
    """End the process with one line on the terminal, and in the log where that is elsewhere."""
    if not sys.stdout.isatty():
        log.error("%s", error)
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
