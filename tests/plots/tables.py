"""Small result tables with the columns of the real ones, and what is read off a figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from tiled_attention.config import Table
from tiled_attention.sizes import naive_bytes, query_tiled_bytes, tiled_bytes

NAMES = ("naive", "query_tiled", "sdpa", "tiled", "tiled_128")
LENGTHS = (512, 1024, 2048, 4096, 8192)
VALUES = (
    "median_ms",
    "ci_low_ms",
    "ci_high_ms",
    "ratio_to_naive",
    "ratio_ci_low",
    "ratio_ci_high",
)
TABLE = Table(lengths=[4096, 131_072], batch=1, heads=64, dtype="bfloat16", block_size=128)


def timing(
    names: Sequence[str] = NAMES,
    lengths: Sequence[int] = LENGTHS,
    block_sizes: Sequence[int] = (16, 32, 64, 128),
) -> pd.DataFrame:
    """cpu_timing's table: implementation number i takes (10 - i) / 10 of naive's time."""
    rows = []
    for index, name in enumerate(names):
        for length in lengths:
            ratio = 1 - index / 10
            rows.append(_timed("lengths", name, length, 64, 1e-5 * length**2 * ratio, ratio))
    for size in block_sizes:
        rows.append(_timed("block sweep", "tiled", 1024, size, 10 + 0.1 * 1024 / size, np.nan))
    return pd.DataFrame(rows)


def _timed(
    series: str, name: str, length: int, block_size: int, ms: float, ratio: float
) -> dict[str, Any]:
    values = (ms, 0.9 * ms, 1.2 * ms, ratio, 0.95 * ratio, 1.1 * ratio)
    shape = {"series": series, "implementation": name, "length": length, "block_size": block_size}
    return shape | {"status": "ok"} | dict(zip(VALUES, values, strict=True))


def without(results: pd.DataFrame, where: "pd.Series[bool]", status: str = "ok") -> pd.DataFrame:
    """Return the table without the values of some rows, and that status."""
    results = results.copy()
    results.loc[where, list(VALUES)] = np.nan
    results.loc[where, "status"] = status
    return results


def fits(
    names: Sequence[str] = NAMES[1:],
    interval: tuple[float, float] = (1300.0, 2100.0),
    predicted: float = 1600.0,
) -> dict[str, pd.DataFrame]:
    """crossover's tables: all cross at `predicted`."""
    grid = np.geomspace(LENGTHS[0], LENGTHS[-1], 20)
    ratio = (grid / predicted) ** -0.2 if np.isfinite(predicted) else np.full(20, 0.8)
    result = [
        {"implementation": name, "baseline": "naive", "fitted_on": "512 1024 2048",
         "predicted_length": predicted, "ci_low": interval[0], "ci_high": interval[1],
         "confirmed_on": "4096 8192", "kind": "crosses", "verdict": "confirmed"}
        for name in names
    ]  # fmt: skip
    curves = [
        pd.DataFrame({"implementation": name, "length": grid, "predicted_ratio": ratio,
                      "predicted_low": 0.9 * ratio, "predicted_high": 1.1 * ratio})
        for name in names
    ]  # fmt: skip
    return {"result": pd.DataFrame(result), "curves": pd.concat(curves), "block_cost": line()}


def line(status: str = "ok") -> pd.DataFrame:
    """crossover's "block_cost", in agreement with `timing`."""
    row = {"implementation": "tiled", "length": 1024, "ms_per_block": 0.1, "ci_low": 0.08,
           "ci_high": 0.13, "intercept_ms": 10.0, "r_squared": 0.99, "status": status}  # fmt: skip
    return pd.DataFrame([row if status == "ok" else {"status": status}])


def counted(table: Table = TABLE) -> pd.DataFrame:
    """byte_arithmetic's table."""
    shape = (table.heads, table.batch, table.dtype)
    rows = [
        {"length": it, "naive_bytes": naive_bytes(it, *shape),
         "tiled_bytes": tiled_bytes(it, *shape, table.block_size),
         "query_tiled_bytes": query_tiled_bytes(it, *shape, table.block_size)}
        for it in table.lengths
    ]  # fmt: skip
    return pd.DataFrame(rows)


def devices(names: Mapping[str, int]) -> pd.DataFrame:
    """byte_arithmetic's devices, by name and nominal size, in both readings and two heads."""
    rows = [
        {"device": name.lower(), "device_name": f"{name} {size} GB", "reading": reading,
         "memory_bytes": size * unit, "heads": heads}
        for name, size in names.items()
        for reading, unit in (("decimal", 10**9), ("binary", 2**30))
        for heads in (32, 64)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def peaks(names: Sequence[str] = NAMES, lengths: Sequence[int] = LENGTHS[:3]) -> pd.DataFrame:
    """peak_memory's table: measured is 1 % above the account."""
    rows = [
        {"implementation": name, "length": length, "score_matrix_bytes": 32 * length**2,
         "account_bytes": 32 * length**2 * (index + 1),
         "measured_bytes": 1.01 * 32 * length**2 * (index + 1), "status": "ok"}
        for index, name in enumerate(names)
        for length in lengths
    ]  # fmt: skip
    return pd.DataFrame(rows)


def judged(name: str, shares: Sequence[float], **more: Any) -> pd.DataFrame:
    """correctness's table of one implementation, with errors of these shares of the tolerance."""
    rows = [
        {"implementation": name, "dtype": "float32", "max_abs_error": share * 1e-6,
         "tolerance": 1e-6, "passed": share <= 1, "status": "ok"}
        for share in shares
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**more)


def mutants() -> pd.DataFrame:
    """gate_sensitivity's table: each fault's largest share is 10 times that of the one before."""
    parts = [
        judged("tiled", [0.5, 20.0 * 10**index / (1 + half)], mutant=fault, dtype=dtype)
        for index, fault in enumerate(("dropped precision", "wrong mask"))
        for half, dtype in enumerate(("float32", "bfloat16"))
    ]
    return pd.concat(parts, ignore_index=True)


def words(figure: Figure) -> str:
    """Everything that is written on the figure, wrapped lines joined."""
    texts = [it.get_text() for it in figure.findobj(Text) if it.get_visible()]
    return " ".join(" ".join(texts).split())


def labelled(axes: Axes, label: str) -> Any:
    """The one thing on the axes with that label: a line, or a line with error bars."""
    handles, labels = axes.get_legend_handles_labels()
    (found,) = [handle for handle, it in zip(handles, labels, strict=True) if it == label]
    return found


def joined(axes: Axes, color: Any) -> list[list[float]]:
    """The lengths that each line of a colour joins, to the nearest power of two."""
    lines = [it for it in axes.get_lines() if it.get_color() == color and _is_joining(it)]
    return [[2 ** round(np.log2(x)) for x in it.get_xdata()] for it in lines]


def _is_joining(line: Line2D) -> bool:
    return line.get_linestyle() != "None" and len(set(line.get_xdata())) > 1


def gpu_timing(
    ratios: Mapping[str, float],
    lengths: Sequence[int] = (512, 2048, 8192),
    head_dims: Sequence[int] = (64, 128),
) -> pd.DataFrame:
    """gpu_timing's table: each implementation takes its share of naive's time at every shape."""
    rows = []
    for head_dim in head_dims:
        for causal in (False, True):
            for length in lengths:
                for name, ratio in ratios.items():
                    ms = 1e-6 * length**2 * ratio
                    values = (ms, 0.98 * ms, 1.02 * ms, ratio, 0.99 * ratio, 1.01 * ratio)
                    rows.append(
                        {"implementation": name, "dtype": "bfloat16", "batch": 16384 // length,
                         "heads": 2048 // head_dim, "length": length, "head_dim": head_dim,
                         "causal": causal, "samples": 20, "status": "ok",
                         "tflops": 100 / ratio, **dict(zip(VALUES, values, strict=True))}
                    )  # fmt: skip
    return pd.DataFrame(rows)


def cpu_bandwidth(cores: Sequence[int] = (1, 2)) -> pd.DataFrame:
    """cpu_bandwidth's table: 100 GB/s a core in the first cache, 10 in all from main memory."""
    return pd.DataFrame(
        {"cores": count, "working_set_bytes": size, "samples": 3, "gb_per_s": rate,
         "ci_low": 0.9 * rate, "ci_high": 1.1 * rate, "status": "ok"}
        for count in cores
        for size, rate in ((2**14, 100.0 * count), (2**28, 10.0))
    )  # fmt: skip


def gpu_bandwidth(shared: float = 30_000.0, hbm: float = 4_000.0) -> pd.DataFrame:
    """gpu_bandwidth's table: shared memory, a working set in L2, one in HBM."""
    cached = "device memory and its caches"
    return pd.DataFrame(
        {"read_from": read_from, "working_set_bytes": size, "samples": 5, "gb_per_s": rate,
         "ci_low": 0.99 * rate, "ci_high": 1.01 * rate, "status": "ok"}
        for read_from, size, rate in (
            ("shared memory", 2**24, shared), (cached, 2**25, 2 * hbm), (cached, 2**30, hbm)
        )
    )  # fmt: skip


def gpu_memory(held: float = 2.0, heads: Sequence[int] = (32, 64)) -> pd.DataFrame:
    """gpu_memory's table: naive holds so many score matrices at its peak."""
    rows = []
    for count in heads:
        length = int((140e9 / (held * count * 2)) ** 0.5) // 64 * 64
        scores = naive_bytes(length, count, 1, "bfloat16")
        rows.append(
            {"implementation": "naive", "dtype": "bfloat16", "batch": 1, "heads": count,
             "head_dim": 128, "memory_bytes": 150_000_000_000, "largest_length": length,
             "first_length_out_of_memory": length + 64, "peak_bytes": int(held * scores),
             "score_matrix_bytes": scores, "account_bytes": int(held * scores), "status": "ok"}
        )  # fmt: skip
    return pd.DataFrame(rows)


def gpu_traffic(lengths: Sequence[int] = (512, 2048)) -> pd.DataFrame:
    """gpu_traffic's table: naive moves what theory says, the fused kernel the least possible."""
    rows = []
    for length in lengths:
        batch, heads = 16384 // length, 16
        least = 4 * batch * heads * length * 128 * 2
        standard = least + 4 * batch * heads * length**2 * 2
        for name, moved in (("naive", standard), ("triton_flash", least)):
            rows.append(
                {"implementation": name, "dtype": "bfloat16", "batch": batch, "heads": heads,
                 "length": length, "head_dim": 128, "causal": False, "block_size": None,
                 "on_chip_bytes": 233_472, "least_bytes": least, "standard_bytes": standard,
                 "flash_bytes": least, "read_bytes": moved // 2, "written_bytes": moved // 2,
                 "kernels": 4 if name == "naive" else 1, "status": "ok"}
            )  # fmt: skip
    return pd.DataFrame(rows)


def gpu_rates(lengths: Sequence[int] = (512, 2048, 8192)) -> pd.DataFrame:
    """gpu_timing's table of the matrix product: 700 TFLOP/s at every shape."""
    return pd.DataFrame(
        {"dtype": "bfloat16", "batch": 1, "heads": 2048 // head_dim, "length": length,
         "head_dim": head_dim, "causal": causal, "samples": 20, "matrix_tflops": 700.0}
        for head_dim in (64, 128)
        for causal in (False, True)
        for length in lengths
    )  # fmt: skip
