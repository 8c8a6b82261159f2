"""Where and with what a result was measured. No host name, user name or absolute path."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from tiled_attention import gpu
from tiled_attention.sources import ROOT

PACKAGES = (
    "torch",
    "triton",
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "seaborn",
    "hydra-core",
    "omegaconf",
    "snakemake",
    "tiled-attention",
)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def machine() -> dict[str, Any]:
    """Return CPU model, cores, clock and memory, and every GPU."""
    frequency = psutil.cpu_freq()
    return {
        "cpu": cpu_model(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "usable_threads": len(os.sched_getaffinity(0)),
        "clock_mhz": round(frequency.current) if frequency else None,
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": round(os.getloadavg()[0], 2),
        "gpus": gpu.described(),
    }


def cpu_model() -> str:
    """Return the CPU's name as the system gives it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def software() -> dict[str, str | None]:
    """Return the versions of Python and the packages that matter; None for one not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def source_control() -> dict[str, Any]:
    """Return the git commit and whether source and configuration were clean; None: unknown."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--", "src", "config", "envs", "Snakefile")
    return {"commit": commit, "clean": None if changes is None else changes == ""}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
