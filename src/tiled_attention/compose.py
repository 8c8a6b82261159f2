"""From overrides to a checked `Config`; whatever is wrong becomes one line in a `ConfigError`."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import TypeAdapter, ValidationError

from tiled_attention.config import Config
from tiled_attention.sources import ROOT, SourceError, constructor_options

CONFIG_DIR = ROOT / "config"
GROUPS_TAKEN_WHOLE = ("implementation", "device")
# Values that follow another key by interpolation: a fault is told of the key that is followed.
FOLLOWING = (
    "correctness.timed",
    "peak_memory.problem",
    "cpu_timing.problem",
    "peak_memory.lengths",
)


class ConfigError(Exception):
    """A value, key or file of the configuration is not accepted."""


def register_groups() -> None:
    """Give each group that is taken whole an option `all`: one new file is enough to be in."""
    store = ConfigStore.instance()
    for group in GROUPS_TAKEN_WHOLE:
        names = sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))
        store.store(group=group, name="all", node={"defaults": names}, package="_global_")


def composed(overrides: Sequence[str]) -> Config:
    """Compose config/ with Hydra overrides, and check every key and value.

    Raises:
        ConfigError: with one line that names the key, what is wrong and what is accepted.
    """
    register_groups()
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
            node = compose("config", overrides=list(overrides))
            missing = OmegaConf.missing_keys(node)
            if missing:
                raise ConfigError(f"{', '.join(sorted(missing))}: a value must be given")
            return checked(OmegaConf.to_container(node, resolve=True))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(one_line(str(error))) from None


def checked(values: Any) -> Config:
    """Check plain values against the schema, then what only the whole can tell.

    Raises:
        ConfigError: see `composed`.
    """
    try:
        # As JSON, where strict types still let an object stand for a dataclass.
        config = TypeAdapter(Config).validate_json(json.dumps(values))
    except ValidationError as error:
        errors = error.errors()
        causes = [e for e in errors if not _key(e["loc"]).startswith(FOLLOWING)]
        raise ConfigError("; ".join(map(_explain, causes or errors))) from None
    _check_implementations(config)
    _check_names(config)
    return config


def one_line(text: str) -> str:
    """Join a message's lines, without Hydra's search path and hints about itself."""
    lines = [line.strip() for line in text.partition("Config search path")[0].splitlines()]
    message = " ".join(line for line in lines if line and not line.startswith("See http"))
    group = re.search(r"Could not load '(\w+)/", message)
    if group and (CONFIG_DIR / group[1]).is_dir():
        choices = sorted(path.stem for path in (CONFIG_DIR / group[1]).glob("*.yaml"))
        message += f" Available options in '{group[1]}': {', '.join(choices)}"
    return message


def _explain(error: Any) -> str:
    key = _key(error["loc"])
    if error["type"] == "unexpected_keyword_argument":
        return f"{key}: no such option; config/README.md lists them"
    if error["type"] in ("missing", "missing_argument"):
        return f"{key}: a value must be given"
    given = "" if isinstance(error["input"], dict | list) else f" = {error['input']!r}"
    message = error["msg"][0].lower() + error["msg"][1:]
    if error["type"] == "string_type":
        message = f"should be text; where a name reads as a number, quote it: {key}='\"...\"'"
    return f"{key}{given}: {message.removeprefix('input ')}".replace("\n", " ")


def _key(location: Iterable[int | str]) -> str:
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for part in location
        if part != "[key]"
    ).removeprefix(".")


def _check_implementations(config: Config) -> None:
    for name, options in config.implementations.items():
        key = f"implementations.{name}"
        target = options.get("_target_")
        if not isinstance(target, str):
            raise ConfigError(f"{key}._target_: the dotted path of a class must be given")
        try:
            accepted = constructor_options(target)
        except SourceError as error:
            raise ConfigError(f"{key}._target_ = {target!r}: {error}") from None
        for option, value in options.items():
            if option == "_target_":
                continue
            if option not in accepted:
                known = ", ".join(sorted(accepted)) or "none"
                raise ConfigError(f"{key}.{option}: no such option of {target}; it has: {known}")
            if accepted[option] == "int" and (type(value) is not int or value < 1):
                raise ConfigError(f"{key}.{option} = {value!r}: should be an integer >= 1")


def _check_names(config: Config) -> None:
    names = ", ".join(config.implementations)
    for key, name in (
        ("subject", config.subject),
        ("crossover.baseline", config.crossover.baseline),
    ):
        if name is not None and name not in config.implementations:
            raise ConfigError(f"{key} = {name!r}: no such implementation; there are: {names}")
    if config.crossover.baseline != "naive":  # timings hold ratios to naive only
        baseline = config.crossover.baseline
        raise ConfigError(f"crossover.baseline = {baseline!r}: only 'naive' is accepted")
    sweep = config.cpu_timing.block_sweep
    swept = config.implementations.get(sweep.implementation, {})
    if sweep.block_sizes and "block_size" not in swept:
        raise ConfigError(
            f"cpu_timing.block_sweep.implementation = {sweep.implementation!r}: "
            f"should name an implementation that has a block_size; there are: {names}"
        )
    unseen = sorted(set(config.crossover.fitted_lengths) - set(config.cpu_timing.lengths))
    if unseen:
        raise ConfigError(
            f"crossover.fitted_lengths: {unseen} not among cpu_timing.lengths, so never timed"
        )
    for key, lengths in (
        ("cpu_timing.lengths", config.cpu_timing.lengths),
        ("crossover.fitted_lengths", config.crossover.fitted_lengths),
        ("peak_memory.lengths", config.peak_memory.lengths),
        ("byte_arithmetic.table.lengths", config.byte_arithmetic.table.lengths),
        ("correctness.seeds", config.correctness.seeds),
        ("cpu_timing.block_sweep.block_sizes", sweep.block_sizes),
    ):
        repeated = sorted({length for length in lengths if lengths.count(length) > 1})
        if repeated:
            raise ConfigError(f"{key}: {repeated} given more than once")
    sampling = config.cpu_timing.sampling
    if sampling.min_rounds > sampling.max_rounds:
        raise ConfigError(
            f"cpu_timing.sampling.min_rounds = {sampling.min_rounds}: "
            f"should be at most max_rounds = {sampling.max_rounds}"
        )
