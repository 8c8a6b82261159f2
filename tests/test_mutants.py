"""Each planted fault is one line of tiled.py, and the gate rejects it."""

import pytest
import torch

from tiled_attention.cases import Case
from tiled_attention.gate import truth
from tiled_attention.implementations.tiled import Tiled
from tiled_attention.mutants import MUTANTS, Mutant

each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@each_mutant
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("seed", range(3))
def test_every_mutant_is_rejected(mutant: Mutant, dtype: str, seed: int) -> None:
    broken, passes = mutant.build({"block_size": 64}), []
    for causal in (False, True):
        for inputs in ("normal", "five times larger"):
            case = Case("any", dtype=dtype, seed=seed, length_q=256, length_kv=256, inputs=inputs)
            tensors = case.tensors()
            known = truth(*tensors, causal=causal)
            assert known.judge(Tiled(64)(*tensors, causal=causal)).passed
            passes.append(known.judge(broken(*tensors, causal=causal)).passed)
    assert not all(passes)


@each_mutant
def test_mutant_is_an_implementation_of_its_own(mutant: Mutant) -> None:
    broken = mutant.build({"block_size": 16})
    assert broken.block_size == 16
    assert not isinstance(broken, Tiled)
    assert broken.unsupported(*Case("any").without_data(), causal=True, mask=None) is None


def test_mutants_have_names_and_faults_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 3
    assert len({mutant.fault for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("before", ["no such line", "running_max = new_max\n\n", "scores"])
def test_edit_that_does_not_apply_once_is_an_error(before: str) -> None:
    mutant = Mutant("stale", "an edit for an older source", before, "pass")
    with pytest.raises(ValueError, match="'stale'"):
        mutant.build({"block_size": 16})


def test_harmless_edit_gives_the_real_kernel() -> None:
    mutant = Mutant("harmless", "none", "running_max = new_max", "running_max = new_max * 1")
    tensors = Case("any").tensors()
    assert torch.equal(mutant.build({"block_size": 16})(*tensors), Tiled(16)(*tensors))
