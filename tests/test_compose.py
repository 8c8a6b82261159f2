"""Good configurations compose and instantiate; bad ones end in one line that names the key."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from tiled_attention.build import build
from tiled_attention.compose import CONFIG_DIR, ConfigError, composed
from tiled_attention.config import Config
from tiled_attention.options import options, readme
from tiled_attention.sources import ROOT


def names(group: str) -> list[str]:
    return sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))


BAD = [
    ("nothing=3", "nothing"),
    ("+nothing=3", "nothing: no such option"),
    ("+cpu_timing.nothing=3", "cpu_timing.nothing: no such option"),
    ("cpu_timing.nothing=3", "cpu_timing.nothing"),
    (
        "cpu_timing.lengths=[-5]",
        "cpu_timing.lengths[0] = -5: should be greater than or equal to 1",
    ),
    ("cpu_timing.lengths=[0]", "cpu_timing.lengths[0] = 0"),
    ("cpu_timing.lengths=[]", "cpu_timing.lengths: list should have at least 1 item"),
    ("cpu_timing.lengths=1024", "cpu_timing.lengths = 1024: should be a valid array"),
    ("cpu_timing.lengths=[512,x]", "cpu_timing.lengths[1] = 'x': should be a valid integer"),
    ("cpu_timing.lengths=[512,1024,2048,512]", "cpu_timing.lengths: [512] given more than once"),
    ("cpu_timing.lengths=[512]", "crossover.fitted_lengths: [1024, 2048] not among"),
    ("cpu_timing.threads=two", "cpu_timing.threads = 'two': should be a valid integer"),
    ("cpu_timing.threads=0", "cpu_timing.threads = 0"),
    ("cpu_timing.threads=1.5", "cpu_timing.threads = 1.5"),
    ("cpu_timing.seed=-1", "cpu_timing.seed = -1"),
    ("cpu_timing.sampling.confidence=1.5", "cpu_timing.sampling.confidence = 1.5"),
    ("cpu_timing.sampling.confidence=0", "cpu_timing.sampling.confidence = 0"),
    ("cpu_timing.sampling.seconds=-1", "cpu_timing.sampling.seconds = -1"),
    (
        "cpu_timing.sampling.min_rounds=100",
        "cpu_timing.sampling.min_rounds = 100: should be at most",
    ),
    ("cpu_timing.sampling=3", "cpu_timing.sampling"),
    ("cpu_timing.sampling", "cpu_timing.sampling"),
    (
        "cpu_timing.block_sweep.implementation=sdpa",
        "cpu_timing.block_sweep.implementation = 'sdpa'",
    ),
    ("crossover.fitted_lengths=[3]", "crossover.fitted_lengths: [3] not among"),
    ("crossover.baseline=sdpa", "Could not override 'crossover.baseline'"),
    ("crossover.resamples=3", "crossover.resamples = 3"),
    (
        "subject=nope",
        "subject = 'nope': no such implementation; there are: flash_attention_4, flex, naive",
    ),
    ("problem.dtype=float8", "problem.dtype = 'float8': should be 'float32', 'bfloat16' or"),
    ("problem.causal=on", "problem.causal = 'on'"),
    ("problem.heads=true", "problem.heads = True: should be a valid integer"),
    ("problem.batch=2.5", "problem.batch = 2.5"),
    ("implementation=[naive,nope]", "implementation/nope"),
    ("experiment=nope", "experiment/nope"),
    ("implementations.tiled.block_size=0", "implementations.tiled.block_size = 0: should be"),
    ("implementations.tiled.block_size=-64", "implementations.tiled.block_size = -64"),
    ("implementations.tiled.block_size=x", "implementations.tiled.block_size = 'x'"),
    ("implementations.tiled.blok=3", "implementations.tiled.blok"),
    ("+implementations.tiled.blok=3", "implementations.tiled.blok: no such option of"),
    ("implementations.tiled._target_=os.system", "implementations.tiled._target_ = 'os.system'"),
    ("implementations.tiled._target_=tiled_attention.nope.X", "no module tiled_attention.nope"),
    ("devices.h100_80gb.memory=0", "devices.h100_80gb.memory = 0"),
    ("platform=a/b", "platform = 'a/b'"),
    ("platform=..", "platform = '..'"),
    ("platform='a b'", "platform = 'a b'"),
    ("platform=.hidden", "platform = '.hidden'"),
    ("platform=???", "platform: a value must be given"),
    ("platform=1_0", "platform = 10: should be text"),
    ("platform=123e4", "platform = 1230000.0: should be text"),
    ("platform=true", "platform = True: should be text"),
    ("platform=null", "platform = None: should be text"),
    ("a=[", "override 'a=[': cannot be read; accepted: key=value, as in"),
    ("foo", "override 'foo': cannot be read; accepted: key=value, as in"),
    ("implementation=null", "in: implementation=null"),
    ("experiment=null", "in: experiment=null"),
    ("device=3", "in: device=3"),
    ("hydra=3", "in: hydra=3"),
    ("=3", "in: =3"),
    ("@x=3", "in: @x=3"),
    ("byte_arithmetic.fit.heads=[1,1]", "byte_arithmetic.fit.heads: [1] given more than once"),
    ("correctness.block_sizes=[64,64]", "correctness.block_sizes: [64] given more than once"),
    ("correctness.seeds=[1,1]", "correctness.seeds: [1] given more than once"),
    ("gate_sensitivity.seeds=[2,2]", "gate_sensitivity.seeds: [2] given more than once"),
    (
        "correctness.hard_case_dtypes=[float16,float16]",
        "correctness.hard_case_dtypes: ['float16'] given more than once",
    ),
    ("implementations.tiled._target_=tiled_attention..tiled.X", "no module tiled_attention..t"),
    ("platform=" + "a" * 81, "should have at most 80 characters"),
    ("cpu_timing.sampling.seconds=inf", "cpu_timing.sampling.seconds = inf: should be less"),
    ("cpu_timing.sampling.seconds=nan", "cpu_timing.sampling.seconds = nan"),
    ("cpu_timing.sampling.resamples=2000000", "should be less than or equal to 1000000"),
    ("cpu_timing.sampling.resamples=10", "should be greater than or equal to 100"),
]


@pytest.mark.parametrize(("override", "expected"), BAD, ids=[override for override, _ in BAD])
def test_bad_override_is_one_clear_line(override: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        composed([override])
    message = str(caught.value)
    assert expected in message
    assert "\n" not in message
    assert str(ROOT) not in message
    assert str(Path.home()) not in message


@pytest.mark.parametrize("name", ["695e0514", "123e456", "00123", "2026-10-10", "1_0", "12.5"])
def test_platform_names_are_kept_byte_for_byte(name: str) -> None:
    assert composed([f'platform="{name}"']).platform == name


@pytest.mark.parametrize(
    ("override", "value"), [("1e-3", 1e-3), ("1_000", 1000.0), ("12", 12.0), ("0.5", 0.5)]
)
def test_numbers_are_typed_as_hydra_reads_them(override: str, value: float) -> None:
    limit = composed([f"correctness.max_tflop={override}"]).correctness.max_tflop
    assert (limit, type(limit)) == (value, float)


@pytest.mark.parametrize("experiment", names("experiment"))
def test_every_experiment_composes(experiment: str) -> None:
    config = composed([f"experiment={experiment}"])
    assert isinstance(config, Config)
    assert set(config.implementations) == set(names("implementation"))
    assert set(config.devices) == set(names("device"))


@pytest.mark.parametrize("name", names("implementation"))
def test_every_implementation_instantiates(name: str) -> None:
    implementation = build(composed([]).implementations[name])
    assert callable(implementation)


def test_a_group_can_be_narrowed() -> None:
    config = composed(["implementation=[naive,tiled]", "device=[h100_80gb]"])
    assert (list(config.implementations), list(config.devices)) == (
        ["naive", "tiled"],
        ["h100_80gb"],
    )


def test_readme_of_the_options_is_made_from_them() -> None:
    assert (CONFIG_DIR / "README.md").read_text() == readme()


def test_every_key_in_the_files_is_explained() -> None:
    explained = {key for key, _, _ in options()}
    for path in (CONFIG_DIR / "config.yaml", *(CONFIG_DIR / "experiment").glob("*.yaml")):
        for key in dotted(OmegaConf.to_container(OmegaConf.load(path), resolve=False)):
            if not key.startswith(("defaults", "hydra")):
                assert key in explained, f"{path.name}: {key}"


def dotted(values: object, prefix: str = "") -> list[str]:
    if not isinstance(values, dict):
        return []
    keys = [f"{prefix}{key}" for key in values]
    return keys + [
        inner for key, value in values.items() for inner in dotted(value, f"{prefix}{key}.")
    ]
