"""Correctness: judge one implementation on every timed shape and every hard case.

Table 1 of the article is the case `article`; the seeds and block sizes beside it are exercise 1.
Each row holds the error against FP64, naive attention's error in the same precision, the
tolerance that follows from it, and the verdict.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from tqdm import tqdm

from tiled_attention.build import build
from tiled_attention.cases import Case, hard_cases
from tiled_attention.judging import case_columns, judge

log = logging.getLogger(__name__)


def measure(options: Mapping[str, Any], inputs: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return {"result": one row a case} for the one implementation in `options`."""
    ((name, chosen),) = options["implementations"].items()
    rows = []
    cases = list(all_cases(options["correctness"], name, has_blocks="block_size" in chosen))
    limit = options["correctness"]["max_tflop"]
    for case in tqdm(cases, desc=f"correctness of {name}", disable=None):
        implementation = build(chosen, case.block_size)
        row = {"implementation": name, **case_columns(case, implementation)}
        rows.append(row | judge(implementation, case, limit))
    result = pd.DataFrame(rows)
    result["passed"] = result["passed"].astype("boolean")
    if not result["passed"].any():
        log.warning("%s supports none of the cases", name)
    return {"result": result}


def all_cases(correctness: Mapping[str, Any], name: str, has_blocks: bool) -> Iterator[Case]:
    """Yield the article's check, the timed shapes and the hard cases."""
    timed = dict(correctness["timed"])
    heads = timed.pop("heads")
    shape = Case("timed", heads=heads, heads_kv=heads, **timed)
    length = correctness["length"]
    article = replace(shape, name="article", length_q=length, length_kv=length)
    for block_size in correctness["block_sizes"] if has_blocks else [None]:
        for seed in correctness["seeds"]:
            yield replace(article, seed=seed, block_size=block_size)
    for length in correctness["timed_lengths"]:
        yield replace(shape, length_q=length, length_kv=length)
    sweep = correctness["timed_sweep"]
    if sweep["implementation"] == name:
        length = sweep["length"]
        for block_size in sweep["block_sizes"]:
            yield replace(
                shape,
                name="timed, block sweep",
                length_q=length,
                length_kv=length,
                block_size=block_size,
            )
    yield from hard_cases(correctness["hard_case_dtypes"])


if __name__ == "__main__":
    from tiled_attention.program import run_step

    run_step("correctness", measure, __doc__)
