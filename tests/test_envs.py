"""The pins of the conda file are those of the pip constraints."""

import re
from pathlib import Path

import yaml

ENVS = Path(__file__).resolve().parents[1] / "envs"
NEEDED = {"torch", "triton", "snakemake", "hydra-core", "pandas", "seaborn"}


def pins(lines: list[str]) -> dict[str, str]:
    found = (re.fullmatch(r"([A-Za-z0-9_.-]+)==(\S+)", line.strip()) for line in lines)
    return {match[1].lower(): match[2] for match in found if match}


def test_conda_and_pip_agree() -> None:
    constraints = pins((ENVS / "constraints.txt").read_text().splitlines())
    environment = yaml.safe_load((ENVS / "tiled-attention.yaml").read_text())
    (pip,) = (part["pip"] for part in environment["dependencies"] if isinstance(part, dict))
    conda = pins(pip)
    assert len(conda) == len(pip)
    assert set(conda) >= NEEDED
    assert conda == {name: constraints[name] for name in conda}
    assert constraints["torch"] == "2.13.0"
    assert constraints["triton"] == "3.7.1"
