"""From overrides to a checked `Config`; whatever is wrong becomes one line in a `ConfigError`."""

import ast
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException, OverrideParseException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import TypeAdapter, ValidationError

from tiled_attention.config import Config
from tiled_attention.sources import ROOT, SourceError, constructor_options

CONFIG_DIR = ROOT / "config"
DEVICES = ("cpu", "cuda")  # an implementation's `_devices_`; the first where it has none
GROUPS_TAKEN_WHOLE = ("implementation", "device", "machine")
# Values that follow another key by interpolation: a fault is told of the key that is followed.
FOLLOWING = (
    "correctness.timed",
    "peak_memory.problem",
    "cpu_timing.problem",
    "peak_memory.lengths",
    "gpu_correctness.grid",
    "gpu_correctness.problem",
    "gpu_timing.problem.",
    "gpu_traffic.grid",
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
    except OverrideParseException as error:
        raise ConfigError(
            f"override {error.override!r}: cannot be read; accepted: key=value, as in "
            f"cpu_timing.lengths=[512,1024] ({error.message.splitlines()[0]})"
        ) from None
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(one_line(str(error))) from None
    except ValueError as error:  # Hydra's for a group that is given no file's name
        raise ConfigError(f"{one_line(str(error))} in: {' '.join(overrides)}") from None


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
    message = error["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
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
        devices = options.get("_devices_", [])
        if not isinstance(devices, list) or not set(map(str, devices)) <= set(DEVICES):
            raise ConfigError(f"{key}._devices_ = {devices!r}: should be a list of cpu and cuda")
        for option, value in options.items():
            if option in ("_target_", "_devices_"):
                continue
            if option not in accepted:
                known = ", ".join(sorted(accepted)) or "none"
                raise ConfigError(f"{key}.{option}: no such option of {target}; it has: {known}")
            if accepted[option].startswith("Literal["):
                choices = ast.literal_eval(accepted[option].removeprefix("Literal"))
                if value not in choices:
                    known = ", ".join(choices)
                    raise ConfigError(f"{key}.{option} = {value!r}: accepted: {known}")
            if accepted[option] == "int" and (type(value) is not int or value < 1):
                raise ConfigError(f"{key}.{option} = {value!r}: should be an integer >= 1")


def _check_names(config: Config) -> None:
    names = ", ".join(config.implementations)
    if config.subject is not None and config.subject not in config.implementations:
        raise ConfigError(
            f"subject = {config.subject!r}: no such implementation; there are: {names}"
        )
    unknown = [name for name in config.platforms if name not in config.machines]
    if unknown:
        raise ConfigError(
            f"platforms: no config/machine/{unknown[0]}.yaml; there are: "
            f"{', '.join(config.machines)}"
        )
    if config.platforms and config.gpu == "none":
        raise ConfigError("platforms: they are for the GPU's steps, which gpu=none leaves out")
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
    for step, sampling in (
        ("cpu_timing", config.cpu_timing.sampling),
        ("gpu_timing", config.gpu_timing.sampling),
    ):
        if sampling.min_rounds > sampling.max_rounds:
            raise ConfigError(
                f"{step}.sampling.min_rounds = {sampling.min_rounds}: "
                f"should be at most max_rounds = {sampling.max_rounds}"
            )
    grid = config.gpu_timing.grid
    for key, whole, parts in (
        ("lengths", grid.tokens, grid.lengths),
        ("head_dims", grid.hidden, grid.head_dims),
    ):
        odd = [part for part in parts if whole % part]
        if odd:
            raise ConfigError(f"gpu_timing.grid.{key}: {odd} do not divide {whole}")
    traffic = config.gpu_traffic
    for key, chosen, known in (
        ("lengths", traffic.lengths, grid.lengths),
        ("head_dim", [traffic.head_dim], grid.head_dims),
    ):
        absent = [it for it in chosen if it not in known]
        if absent:
            raise ConfigError(f"gpu_traffic.{key}: {absent} not among {known}")
