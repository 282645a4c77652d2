"""Launches on stand-in devices: grids, blocks, faults, native code for CUDA only, records in loops."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp.errors import ArgumentError, DeviceError, LaunchError, UnsupportedSyntaxError

ROOT = Path(__file__).resolve().parents[2]
Floats = wp.array(dtype=float)
Ints = wp.array(dtype=int)

BLOCK_SUM = """
    __shared__ int sum[128];

    sum[tid] = arr[tid];
    __syncthreads();

    for (int stride = 64; stride > 0; stride >>= 1) {
        if (tid < stride) {
            sum[tid] += sum[tid + stride];
        }
        __syncthreads();
    }

    if (tid == 0) {
        out[0] = sum[0];
    }
    """


@wp.func_native(BLOCK_SUM)
def reduce(arr: Ints, out: Ints, tid: int): ...


@wp.kernel
def reduce_kernel(arr: Ints, out: Ints):
    tid = wp.tid()
    reduce(arr, out, tid)


@wp.kernel
def visits(counts: wp.array4d(dtype=int), blocks: Ints):
    i, j, k, m = wp.tid()
    wp.atomic_add(counts, i, j, k, m, 1)
    blocks[0] = wp.block_dim()


@wp.kernel(launch_bounds=(64, 2))
def bounded(out: Ints):
    out[wp.tid()] = wp.block_dim()


@wp.kernel(module="unique", module_options={"mode": "debug"})
def checked(x: Floats, n: int):
    i = wp.tid()
    x[i + n] = 1.0


@wp.kernel
def positive(x: Floats):
    i = wp.tid()
    assert x[i] > 0.0
    x[i] = -x[i]


@wp.kernel
def growing(x: Floats, n: Ints):
    i = wp.tid()
    for _k in range(n[i]):
        x[i] = wp.sin(x[i]) * x[i] + x[i]


@wp.struct
class Options:
    factor: float
    shift: wp.vec3
    values: Floats


@wp.kernel
def with_struct(options: Options, matrix: wp.mat22, text: wp.uint8, out: Floats):
    i = wp.tid()
    out[i] = options.factor * options.values[i] + options.shift[1] + matrix[1, 0] + float(text)


def test_the_sum_over_a_block_in_shared_memory(driver: FakeDriver) -> None:
    x = wp.array(np.arange(128, dtype=np.int32), device="cuda")
    out = wp.zeros(1, dtype=int, device="cuda")
    wp.launch(kernel=reduce_kernel, dim=128, inputs=[x, out], device="cuda", block_dim=128)
    assert str(out) == "[8128]"
    with pytest.raises(UnsupportedSyntaxError, match="__shared__, which only CUDA has"):
        wp.launch(kernel=reduce_kernel, dim=128, inputs=[wp.zeros(128, dtype=int), wp.zeros(1, dtype=int)])


@pytest.mark.parametrize(("block_dim", "max_blocks"), [(256, 0), (32, 1), (1, 3), (1024, 0), (7, 2)])
def test_any_grid_runs_every_work_item_once(block_dim: int, max_blocks: int, driver: FakeDriver) -> None:
    counts, blocks = wp.zeros((3, 5, 2, 7), dtype=int, device="cuda"), wp.zeros(1, dtype=int, device="cuda")
    options: dict[str, Any] = {"device": "cuda", "block_dim": block_dim, "max_blocks": max_blocks}
    wp.launch(visits, counts.shape, inputs=[counts, blocks], **options)
    assert (counts.numpy() == 1).all() and blocks.list() == [block_dim]
    wp.launch(visits, (0, 5, 2, 7), inputs=[counts, blocks], **options)
    assert (counts.numpy() == 1).all()


def test_blocks_keep_within_their_bounds(driver: FakeDriver) -> None:
    out = wp.zeros(100, dtype=int, device="cuda")
    wp.launch(bounded, 100, inputs=[out], device="cuda", block_dim=64)
    assert out.list() == [64] * 100
    with pytest.raises(ArgumentError, match="block_dim must be 1 to 64, got 256"):
        wp.launch(bounded, 100, inputs=[out], device="cuda")
    with pytest.raises(ArgumentError, match="block_dim must be 1 to 1024, got 2048"):
        wp.launch(positive, 1, inputs=[wp.ones(1, device="cuda")], device="cuda", block_dim=2048)


def test_arguments_by_value(driver: FakeDriver) -> None:
    options = Options(factor=2.0, shift=wp.vec3(0.0, 0.5, 0.0), values=wp.array([1.0, 2.0], dtype=float, device="cuda"))
    out = wp.zeros(2, dtype=float, device="cuda")
    wp.launch(with_struct, 2, inputs=[options, wp.mat22(0.0, 0.0, 0.25, 0.0), 3, out], device="cuda")
    assert out.list() == [5.75, 7.75]


def test_debug_mode_names_array_line_and_work_item_at_the_launch(driver: FakeDriver) -> None:
    x = wp.zeros(5, dtype=float, device="cuda")
    with pytest.raises(LaunchError, match=r"index 5 is out of bounds for array 'x', .* 5 elements, at line ") as caught:
        wp.launch(checked, 5, inputs=[x, 2], device="cuda")
    assert "x[i + n] = 1.0" in str(caught.value) and caught.value.line
    wp.launch(checked, 5, inputs=[x, 0], device="cuda")
    assert x.list() == [1] * 5


def test_failed_assertions_are_told_by_the_next_wait(driver: FakeDriver) -> None:
    good, bad = wp.ones(300, dtype=float, device="cuda"), wp.full(300, -1.0, dtype=float, device="cuda")
    wp.launch(positive, 300, inputs=[bad], device="cuda")
    wp.launch(positive, 300, inputs=[good], device="cuda")
    wp.launch(positive, 300, inputs=[bad], device="cuda")
    with pytest.raises(LaunchError, match=r"positive: assertion failed, .* index \(0\)(.|\n)*assert x\[i\]") as caught:
        wp.synchronize_device("cuda")
    assert "other launches" not in str(caught.value)
    assert good.list() == [-1.0] * 300
    for _ in range(3):  # a work item goes on after a check that fails
        wp.launch(positive, 300, inputs=[good], device="cuda")
    with pytest.raises(LaunchError, match="and 1 other launches failed"):
        good.numpy()
    assert good.list() == [1.0] * 300


def test_more_launches_than_can_be_watched(driver: FakeDriver) -> None:
    x = wp.ones(1, dtype=float, device="cuda")
    for _ in range(700):
        x.fill_(1.0)
        wp.launch(positive, 1, inputs=[x], device="cuda")
    wp.synchronize()
    assert x.list() == [-1.0]


def test_records_in_loops_grow_until_they_fit(driver: FakeDriver) -> None:
    """The second launch needs more than the first has taught; the third no more."""
    for most in (3, 60, 60):
        trips = np.array([most, 0, most // 2], np.int32)
        found = []
        for device in ("cpu", "cuda"):
            x = wp.array([0.3, 0.5, -0.2], dtype=float, device=device, requires_grad=True)
            with wp.Tape() as tape:
                y = wp.clone(x)
                wp.launch(growing, 3, inputs=[y, wp.array(trips, device=device)], device=device)
            tape.backward(grads={y: wp.ones_like(y)})
            found.append((y.numpy(), x.grad.numpy()))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-4)


def test_adjoint_launches(driver: FakeDriver) -> None:
    options = Options(factor=3.0, values=wp.array([1.0, 2.0], dtype=float, device="cuda", requires_grad=True))
    out = wp.zeros(2, dtype=float, device="cuda")
    wp.launch(
        with_struct,
        2,
        inputs=[options, wp.mat22(), 3],
        outputs=[out],
        adj_inputs=[None, None, None],
        adj_outputs=[wp.array([1.0, 10.0], dtype=float, device="cuda")],
        adjoint=True,
        device="cuda",
    )
    assert options.values.grad.list() == [3.0, 30.0]


def test_generic_kernels_maps_and_force_load(driver: FakeDriver) -> None:
    x = wp.array([1.0, 4.0], dtype=wp.float64, device="cuda")
    assert wp.map(wp.sqrt, x).list() == [1, 2]
    assert wp.map(wp.sqrt, x).device == "cuda:0"
    wp.force_load("cuda", [sys.modules[__name__]])
    wp.load_module(sys.modules[__name__], device="cuda:1")


def test_devices_are_named_and_current(driver: FakeDriver) -> None:
    assert [str(device) for device in wp.get_devices()] == ["cpu", "cuda:0", "cuda:1"]
    assert wp.get_cuda_device_count() == 2 and wp.is_cuda_available() and wp.get_preferred_device() == "cuda:0"
    first, second = wp.get_cuda_devices()
    assert wp.get_device("cuda") is first == "cuda" and wp.get_device("CUDA:1 ") is second != "cuda"
    with wp.ScopedDevice("cuda:1"):
        assert wp.get_device("cuda") is second
        assert wp.zeros(1).device is second
    assert (first.name, first.arch, first.sm_count, first.is_uva) == ("stand-in 0", 90, 4, True)
    assert first.context != second.context and not first.is_capturing
    with pytest.raises(DeviceError, match=r'no such device: .cuda:2.; available: "cpu", "cuda:0", "cuda:1"'):
        wp.get_device("cuda:2")


def test_other_frameworks_keep_their_current_context(driver: FakeDriver) -> None:
    driver.set_context(wp.get_device("cuda:1").context)
    x = wp.zeros(1, device="cuda:0")
    wp.launch(positive, 1, inputs=[x.contiguous()], device="cuda:0")
    assert driver.current_context() == wp.get_device("cuda:1").context
    driver.synchronize_context()
    with pytest.raises(LaunchError):
        wp.synchronize()


PROGRAM = """
import sys, warp as wp
assert wp.zeros(3).list() == [0, 0, 0] and "cuda.bindings" not in sys.modules
assert not wp.is_cuda_available() and wp.get_devices() == [wp.get_device("cpu")]
assert not wp.is_mempool_supported("cpu") and wp.zeros(2, pinned=True).list() == [0, 0]
wp.synchronize()
try:
    wp.zeros(1, device="cuda")
except RuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("is_hidden", [False, True])
def test_without_a_driver_there_are_no_cuda_devices_and_the_reason_is_told(is_hidden: bool) -> None:
    hide = "import sys; sys.modules['cuda'] = None\n" if is_hidden else ""
    program = hide + (PROGRAM.replace(' and "cuda.bindings" not in sys.modules', "") if is_hidden else PROGRAM)
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("CUDA is not available: 'cuda'; available: \"cpu\"; CUDA cannot be used: ")
