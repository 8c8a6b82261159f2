"""What only a real GPU can show: the kernel's arithmetic, device time, memory and its traffic.

The numbers in names of cases are those of the fault list that the project is built against.
"""

import math
import multiprocessing
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from tqdm import tqdm

from tiled_attention.cases import Case, hard_cases, offsets_case
from tiled_attention.compose import composed
from tiled_attention.device_clock import DeviceClock, device_handle
from tiled_attention.gate import truth
from tiled_attention.gpu import nvml, state
from tiled_attention.gpu_device import name_of
from tiled_attention.implementations.naive import Naive
from tiled_attention.implementations.triton_flash import TritonFlash, forward
from tiled_attention.judging import judge
from tiled_attention.steps import gpu_bandwidth, gpu_correctness, gpu_memory, gpu_traffic
from tiled_attention.timed_shape import time_shape
from tiled_attention.timing import exclusive, interleaved

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


@pytest.fixture(autouse=True)
def memory_given_back() -> Iterator[None]:
    yield
    torch.cuda.empty_cache()


@pytest.fixture
def not_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process uses the GPU already, so that a step in it would find the GPU busy."""
    for step in (gpu_bandwidth, gpu_memory, gpu_traffic):
        monkeypatch.setattr(step, "require_idle", lambda: None)


@pytest.fixture(scope="module")
def clock() -> DeviceClock:
    return DeviceClock()


def drawn(length: int, dtype: str = "bfloat16", heads: int = 16, **shape: Any) -> Case:
    return Case("drawn", dtype=dtype, heads=heads, heads_kv=heads, length_q=length,
                length_kv=length, **{"head_dim": 128, **shape})  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_every_hard_case(dtype: str) -> None:
    rows = {case: judge(TritonFlash(), case, device="cuda") for case in hard_cases([dtype])}
    assert not {case: row for case, row in rows.items() if row["passed"] is False}
    assert sum(row["passed"] is True for row in rows.values()) > len(rows) / 2


def test_9_offsets_past_two_to_the_31() -> None:
    (case,) = offsets_case()
    assert judge(TritonFlash(), case, device="cuda")["passed"] is True


@pytest.mark.parametrize("head_dim", [8, 40, 64, 80, 96, 128, 256])
@pytest.mark.parametrize("length", [1, 17, 63, 64, 65, 137, 500])
def test_3_and_5_ragged_lengths_and_head_sizes(head_dim: int, length: int) -> None:
    for causal in (False, True):
        case = Case("ragged", dtype="bfloat16", heads=4, heads_kv=2, length_q=length,
                    length_kv=137, head_dim=head_dim, causal=causal)  # fmt: skip
        assert judge(TritonFlash(), case, device="cuda")["passed"] is True


def test_6_and_12c_fp32_is_never_tf32(matmul_precision: Callable[[str], None]) -> None:
    case = drawn(500, "float32", 4, head_dim=64)
    before = judge(TritonFlash(), case, device="cuda")
    assert before["max_abs_error"] < 1e-5
    matmul_precision("high")
    assert judge(TritonFlash(), case, device="cuda") == before


def test_12b_one_key_of_a_huge_score() -> None:
    query = torch.full((1, 1, 1, 128), -64.0, device="cuda")
    key = torch.full((1, 1, 1, 128), 64.0, device="cuda")
    output, lse = forward(query, key, torch.ones_like(key), return_lse=True)
    assert lse is not None
    assert output.eq(1).all()
    assert lse.item() == pytest.approx(-524288 / math.sqrt(128))


def test_every_element_of_a_poisoned_output_is_written() -> None:
    tensors = drawn(333, heads=3).tensors("cuda")
    output, _ = forward(*tensors, causal=True, poison=math.nan)
    assert truth(*tensors, causal=True).judge(output).passed


def test_200_launches_give_the_same_bits() -> None:
    tensors = drawn(1024).tensors("cuda")
    first, _ = forward(*tensors, causal=True)
    assert all(torch.equal(first, forward(*tensors, causal=True)[0]) for _ in range(200))


def test_7_a_gpu_result_names_the_gpu() -> None:
    config = composed(["experiment=smoke"])
    options = {"gpu_correctness": {
        "hard_case_dtypes": ["float16"], "grid": {"lengths": [], "head_dims": [], "causal": []},
        "problem": {"heads": 1}, "problem_lengths": [], "max_tflop": 0.001,
    }, "implementations": {"triton_flash": config.implementations["triton_flash"]}}  # fmt: skip
    result = gpu_correctness.measure(options, {})["result"]
    assert set(result["ran_on"]) == {torch.cuda.get_device_name()} == {name_of("cuda")}


def test_13_device_time_grows_and_agrees_with_a_synchronised_wall_clock(
    clock: DeviceClock,
) -> None:
    times = {}
    for length in (4096, 8192, 16384):  # long enough to hide what a launch costs
        tensors = drawn(length).tensors("cuda")
        forward(*tensors)
        times[length] = median(clock(forward, tensors) for _ in range(7))
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(30):
            forward(*tensors)
        torch.cuda.synchronize()
        wall = (time.perf_counter() - start) * 1e3 / 30
        assert times[length] == pytest.approx(wall, rel=0.25)
    assert times[4096] * 2 < times[8192]
    assert times[8192] * 2 < times[16384]


def test_14_compilation_is_outside_and_processes_share_a_configuration(
    clock: DeviceClock,
) -> None:
    with tqdm(disable=True) as progress:
        samples = interleaved(
            {"fused": forward}, lambda number: drawn(1024 + 8).tensors("cuda"), clock=clock,
            min_rounds=9, max_rounds=9, seconds=1.0, progress=progress,
        )  # fmt: skip
    times = [sample["ms"] for sample in samples]
    assert max(times) < 100  # milliseconds; compiling takes a second
    program = (
        "from tiled_attention.implementations.tuned import choose_blocks as c;"
        "print([c(90, d, b) for d in (64, 128, 256) for b in (2, 4)])"
    )
    told = {subprocess.check_output([sys.executable, "-c", program]) for _ in range(2)}
    assert len(told) == 1


def test_15_the_flush_is_outside_the_timed_region(clock: DeviceClock) -> None:
    small = torch.ones(16, device="cuda")
    clock(torch.neg, (small,))
    flush_ms = 2 * clock.buffer.numel() / 5e12 * 1e3  # at more than any GPU's bandwidth
    assert median(clock(torch.neg, (small,)) for _ in range(9)) < flush_ms / 2


def test_18_after_too_great_a_length_the_next_one_is_timed(clock: DeviceClock) -> None:
    options = {"sampling": {"min_rounds": 3, "max_rounds": 3, "seconds": 0.1,
                            "confidence": 0.95, "resamples": 100}}  # fmt: skip
    statuses = []
    for length in (1024, 2**20, 2048):
        case = drawn(length)
        verdicts = judged_as_right(case)
        with tqdm(disable=True) as progress:
            rows, _ = time_shape(case, {"naive": Naive()}, {"naive": "naive"}, verdicts, options,
                                 progress, device="cuda", clock=clock)  # fmt: skip
        statuses.append(rows[0]["status"])
    assert statuses[0] == statuses[2] == "ok"
    assert "GB are available" in statuses[1]


def judged_as_right(case: Case) -> Any:
    import pandas as pd

    from tiled_attention.judging import case_columns

    row = case_columns(case, Naive()) | {"case": "timed", "implementation": "naive"}
    return pd.DataFrame([row | {"passed": True, "status": "ok"}])


def test_19_the_order_does_not_decide(clock: DeviceClock) -> None:
    def fused(*tensors: Tensor) -> Tensor:
        return forward(*tensors)[0]

    def library(*tensors: Tensor) -> Tensor:
        return scaled_dot_product_attention(*tensors)

    ratios = []
    for functions in ({"a": fused, "b": library}, {"b": library, "a": fused}):
        with tqdm(disable=True) as progress:
            samples = interleaved(
                functions, lambda number: drawn(2048, batch=4).tensors("cuda"), clock=clock,
                min_rounds=20, max_rounds=20, seconds=1.0, progress=progress,
            )  # fmt: skip
        times = {name: median(it["ms"] for it in samples if it["name"] == name) for name in "ab"}
        ratios.append(times["a"] / times["b"])
    assert ratios[0] == pytest.approx(ratios[1], rel=0.05)


def hold(holds: Any, seconds: float) -> None:
    with exclusive("gpu"):
        holds.set()
        time.sleep(seconds)


def test_19c_two_timings_never_share_the_gpu() -> None:
    context = multiprocessing.get_context("fork")  # spawned, it could not import this file
    holds = context.Event()
    other = context.Process(target=hold, args=(holds, 2.0))
    other.start()
    assert holds.wait(60)
    start = time.perf_counter()
    with exclusive("gpu"):
        waited = time.perf_counter() - start
    other.join()
    assert waited > 0.5


def test_the_state_of_the_gpu_is_read() -> None:
    with nvml():
        found = state(device_handle())
    assert 100 < found["sm_clock_mhz"] < 5000
    assert 10 < found["power_w"] < 2000


def test_bandwidth_falls_from_shared_memory_to_hbm(not_alone: None) -> None:
    chosen = {"working_sets_kib": [32, 8192], "samples": 5, "confidence": 0.95, "resamples": 100}
    rates = gpu_bandwidth.measure({"gpu_bandwidth": chosen}, {})["result"]["gb_per_s"]
    shared, cached, hbm = rates
    assert shared > 2 * hbm
    assert cached > hbm
    big = torch.empty(2**30, dtype=torch.int8, device="cuda")
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    big.clone()
    start.record()
    big.clone()
    end.record()
    end.synchronize()
    assert hbm == pytest.approx(2 * 2**30 / start.elapsed_time(end) / 1e6, rel=0.35)


def test_naive_runs_out_where_its_account_says(not_alone: None) -> None:
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(4e9 / total)
    chosen = {"heads": [16], "batch": 1, "head_dim": 64, "dtype": "bfloat16", "step": 256}
    try:
        tables = gpu_memory.measure({"gpu_memory": chosen}, {})
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    (row,) = tables["result"].to_dict("records")
    assert row["first_length_out_of_memory"] - row["largest_length"] == 256
    assert row["peak_bytes"] == pytest.approx(row["account_bytes"], rel=0.02)
    assert 2e9 < row["peak_bytes"] < 4e9


@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute is not installed")
def test_counters_see_naive_move_its_scores(not_alone: None) -> None:
    config = composed([])
    chosen = {"implementations": ["naive", "triton_flash"], "lengths": [2048], "head_dim": 128,
              "grid": {"lengths": [2048], "tokens": 16384, "head_dims": [128], "hidden": 2048,
                       "causal": [False], "dtype": "bfloat16"}}  # fmt: skip
    options = {"gpu_traffic": chosen, "implementations": config.implementations}
    naive, fused = gpu_traffic.measure(options, {})["result"].to_dict("records")
    assert naive["status"] == fused["status"] == "ok"
    moved = {row["implementation"]: row["read_bytes"] + row["written_bytes"]
             for row in (naive, fused)}  # fmt: skip
    assert moved["naive"] == pytest.approx(naive["standard_bytes"], rel=0.6)
    assert moved["triton_flash"] < 0.3 * moved["naive"]
    assert fused["kernels"] == 1
