"""The shapes that are judged and timed on a GPU: a grid of equal work, and the article's own."""

from collections.abc import Iterator, Mapping
from typing import Any

from tiled_attention.cases import Case


def timed_cases(options: Mapping[str, Any]) -> Iterator[Case]:
    """Yield every timed shape; `options` holds grid, problem, problem_lengths and perhaps seed."""
    seed = options.get("seed", 0)
    grid = options["grid"]
    for head_dim in grid["head_dims"]:
        for causal in grid["causal"]:
            for length in grid["lengths"]:
                heads = grid["hidden"] // head_dim
                yield Case(
                    "timed",
                    dtype=grid["dtype"],
                    batch=grid["tokens"] // length,
                    heads=heads,
                    heads_kv=heads,
                    length_q=length,
                    length_kv=length,
                    head_dim=head_dim,
                    causal=causal,
                    seed=seed,
                )
    problem = dict(options["problem"])
    heads = problem.pop("heads")
    for length in options["problem_lengths"]:
        yield Case(
            "timed, article's shape",
            heads=heads,
            heads_kv=heads,
            length_q=length,
            length_kv=length,
            seed=seed,
            **problem,
        )
