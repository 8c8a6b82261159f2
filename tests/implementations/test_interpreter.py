"""Triton's interpreter in processes of their own: it must be chosen before Triton is imported."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
IMPORT = "from tiled_attention.implementations.triton_flash import TritonFlash"
ASK = """
import torch
tensors = [torch.zeros(1, 1, 4, 16)] * 3
print(TritonFlash().unsupported(*tensors, causal=False, mask=None))
"""


def run(*arguments: str, interpret: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    if interpret is not None:
        environment["TRITON_INTERPRET"] = interpret
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_the_kernel_is_right_under_the_interpreter() -> None:
    done = run("-m", "pytest", "-q", str(TESTS / "interpreted"), interpret="1")
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d+ passed", done.stdout)
    assert "skipped" not in done.stdout


@pytest.mark.parametrize(
    ("program", "interpret", "answer"),
    [
        (f"{IMPORT}\n{ASK}", None, "needs a CUDA device"),
        (f"{IMPORT}\n{ASK}", "0", "needs a CUDA device"),
        (f"{IMPORT}\n{ASK}", "1", "None"),
        (
            f"import os\n{IMPORT}\nos.environ['TRITON_INTERPRET'] = '1'\n{ASK}",
            None,
            "TRITON_INTERPRET was set after triton was imported: set it before",
        ),
    ],
    ids=["unset", "off", "before", "after"],
)
def test_when_it_is_set_is_told_apart(program: str, interpret: str | None, answer: str) -> None:
    done = run("-c", program, interpret=interpret)
    assert done.stdout.strip() == answer, done.stderr


def test_cpu_steps_do_not_need_triton() -> None:
    program = (
        "import sys\nsys.modules['triton'] = None\n"
        "from tiled_attention.steps import correctness, cpu_timing, peak_memory, verdict\n"
        "from tiled_attention.implementations import naive, query_tiled, sdpa, tiled\n"
        "print('imported')"
    )
    assert run("-c", program).stdout.strip() == "imported"
