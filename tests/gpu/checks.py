"""What a GPU must show: run by `tests/gpu/run.sh`, on a GPU or in a rehearsal; not part of the usual tests."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from tests.cuda.test_launches import reduce_kernel
from tests.docs.test_code_blocks import ROOT, blocks_of

import warp as wp
from warp.errors import DeviceError, LaunchError

Floats = wp.array(dtype=wp.float64)
SIZE = 20_000


@wp.kernel
def energy(x: Floats, y: Floats, total: Floats):
    i = wp.tid()
    s = x[i]
    for _k in range(5 + i % 40):
        s = wp.sin(s) * y[i] + 0.5 * s
    y[i] = y[i] * s
    wp.atomic_add(total, 0, s * y[i])


@wp.kernel
def blend(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = 0.5 * (x[i] + y[i])


@wp.kernel
def positive(x: Floats):
    assert x[wp.tid()] > 0.0


@wp.kernel
def narrow(x: wp.array(dtype=wp.float16), y: wp.array(dtype=wp.bfloat16), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = float(x[i] * x[i]) + float(y[i] + y[i])


@wp.kernel
def number(x: wp.array(dtype=wp.int8)):
    i = wp.tid()
    x[i] = wp.int8(i % 101)


def is_real() -> bool:
    """Say whether there is a GPU, and not a stand-in."""
    return wp.get_device().compiler is None


def run_energy(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    x, y = (wp.array(v, dtype=wp.float64, requires_grad=True) for v in (values, weights))
    total = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        scaled = wp.clone(y)
        wp.launch(energy, len(values), inputs=[x, scaled, total])
    tape.backward(total)
    return x.grad.numpy(), y.grad.numpy(), float(total.numpy()[0])


def test_gradients_are_those_of_central_differences() -> None:
    random = np.random.default_rng(7)
    values, weights = random.uniform(-1, 1, 12), random.uniform(0.2, 0.9, 12)
    by_x, by_y, _ = run_energy(values, weights)
    for number in (0, 5, 11):
        for found, changed in ((by_x, 0), (by_y, 1)):
            ends = []
            for step in (1e-6, -1e-6):
                inputs = [values.copy(), weights.copy()]
                inputs[changed][number] += step
                ends.append(run_energy(*inputs)[2])
            assert found[number] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)


def test_gradients_are_the_same_on_the_cpu() -> None:
    random = np.random.default_rng(8)
    values, weights = random.uniform(-1, 1, 2000), random.uniform(0.2, 0.9, 2000)
    here = run_energy(values, weights)
    with wp.ScopedDevice("cpu"):
        there = run_energy(values, weights)
    for found, expected in zip(here, there, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_example_of_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, *_ = blocks_of((ROOT / "README.md").read_text(encoding="utf-8"))
    program = tmp_path / "example.py"
    program.write_text("\n".join(code.lines), encoding="utf-8")
    made = runpy.run_path(str(program))
    assert made["y"].device.is_cuda
    assert capsys.readouterr().out.split() == " ".join(text.lines).split()


def test_arrays_of_more_elements_than_32_bits_count() -> None:
    size = 2**31 + 1000 if is_real() else 2**11 + 1000
    x = wp.zeros(size, dtype=wp.int8)
    wp.launch(number, size, inputs=[x])
    for start in (0, size // 2, size - 500):
        np.testing.assert_array_equal(x[start : start + 500].numpy(), np.arange(start, start + 500) % 101)


def test_the_sum_over_a_block() -> None:
    x, out = wp.array(np.arange(128, dtype=np.int32), dtype=int), wp.zeros(1, dtype=int)
    wp.launch(kernel=reduce_kernel, dim=128, inputs=[x, out])
    assert out.list() == [8128]


def test_small_floats() -> None:
    x, y = wp.array([1.5, 2.0], dtype=wp.float16), wp.array([3.0, 0.25], dtype=wp.bfloat16)
    out = wp.zeros(2, dtype=float)
    wp.launch(narrow, 2, inputs=[x, y, out])
    assert out.list() == [8.25, 4.5]


def test_order_of_streams() -> None:
    x, y = (wp.full(SIZE, value, dtype=wp.float64) for value in (1.0, 3.0))
    streams = [wp.Stream(), wp.Stream()]
    streams[0].wait_stream(wp.get_stream())
    for turn in range(20):
        with wp.ScopedStream(streams[turn % 2]):
            wp.launch(blend, SIZE, inputs=[x, y])
            wp.launch(blend, SIZE, inputs=[y, x])
    wp.get_stream().wait_stream(streams[1])
    np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-9)
    np.testing.assert_allclose(x.numpy(), 5.0 / 3.0, rtol=1e-9)


def test_graphs_with_memory_and_gradients() -> None:
    x = wp.full(SIZE, 0.5, dtype=wp.float64, requires_grad=True)
    total = wp.zeros(1, dtype=wp.float64, requires_grad=True)

    def run() -> None:
        total.zero_()
        with wp.Tape() as tape:
            y = wp.full(SIZE, 0.25, dtype=wp.float64, requires_grad=True)
            wp.launch(energy, SIZE, inputs=[x, y, total])
        tape.zero()
        tape.backward(total)

    run()
    expected = total.list(), x.grad.numpy()
    with wp.ScopedCapture() as capture:
        run()
    for _ in range(3):
        x.grad.fill_(9.0)
        wp.capture_launch(capture.graph)
        assert total.list() == pytest.approx(expected[0], rel=1e-12)
        np.testing.assert_allclose(x.grad.numpy(), expected[1], rtol=1e-12)


@wp.kernel
def halve(x: Floats, turns: wp.array(dtype=int), limit: wp.float64):
    x[0] = 0.5 * x[0]
    turns[0] = int(x[0] > limit)


def test_branches_and_loops_in_graphs() -> None:
    x, y = wp.zeros(1, dtype=wp.float64), wp.zeros(1, dtype=wp.float64)
    turns, choice = wp.zeros(1, dtype=int), wp.zeros(1, dtype=int)

    def body() -> None:
        wp.launch(halve, 1, inputs=[x, turns, 1.0])
        wp.capture_if(choice, on_true=lambda: wp.copy(y, wp.clone(x)), on_false=lambda: y.fill_(-1.0))

    if wp.get_device().driver.driver_version() < 12040:
        with pytest.raises(DeviceError, match=r"from CUDA 12\.4 on"), wp.ScopedCapture():
            wp.capture_while(turns, body)
        return
    with wp.ScopedCapture() as capture:
        wp.capture_while(turns, body)
    for start, chosen, first in ((1000.0, 1, 1), (17.0, 0, 1), (5.0, 1, 0)):
        x.fill_(start)
        y.fill_(0.0)
        choice.fill_(chosen)
        turns.fill_(first)
        wp.capture_launch(capture.graph)
        left = start / 2.0 ** np.ceil(np.log2(start)) if first else start
        assert x.list() == [left]
        assert y.list() == [(left if chosen else -1.0) if first else 0.0]


def test_failed_assertions_name_the_line_and_leave_the_device_usable() -> None:
    x = wp.array([1.0, -1.0], dtype=wp.float64)
    with pytest.raises(LaunchError, match=r"assertion failed, at line \d+, .* index \(1\)"):
        wp.launch(positive, 2, inputs=[x])  # the tests let every launch wait
    wp.launch(blend, 2, inputs=[x, x])
    assert x.list() == [1.0, -1.0]


def test_pinned_memory_and_copies() -> None:
    there = wp.array(np.arange(SIZE), dtype=wp.float64)
    back = wp.zeros(SIZE, dtype=wp.float64, device="cpu", pinned=True)
    wp.copy(back, there)
    wp.synchronize()
    np.testing.assert_array_equal(back.numpy(), np.arange(SIZE))
    np.testing.assert_array_equal(there[::-3].contiguous().numpy(), np.arange(SIZE)[::-3])


def test_memory_comes_back() -> None:
    wp.synchronize()
    before = wp.get_mempool_used_mem_current()
    for _ in range(10):
        wp.zeros(SIZE, dtype=wp.float64)
    wp.synchronize()
    assert wp.get_mempool_used_mem_current() == before
