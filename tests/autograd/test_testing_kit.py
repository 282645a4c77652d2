"""The kit for other people's tests: strategies, gradient properties, devices, and what their failures show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import warp as wp
import warp.autograd
from warp import testing
from warp.errors import ArgumentError, AutogradError
from warp.testing import assert_gradients_close, gradient_property

Floats = wp.array(dtype=wp.float64)


@wp.kernel
def smooth(x: Floats, rows: wp.array2d(dtype=wp.float32), n: int, scale: wp.vec2d, y: Floats):
    i, j = wp.tid()
    total = wp.float64(0.0)
    for k in range(n):
        total += wp.sin(x[k]) * scale[0]
    wp.atomic_add(y, i, total * wp.float64(rows[i, j]) * scale[1])


@wp.kernel
def logarithm(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = wp.log(x[t])


@wp.kernel
def kinks(x: Floats, y: Floats):
    t = wp.tid()
    y[t] = wp.abs(x[t]) + wp.max(x[t], wp.float64(1.0)) + wp.floor(x[t])


@wp.kernel
def in_place(x: Floats, y: wp.array(dtype=wp.float32)):
    t = wp.tid()
    x[t] *= x[t]
    y[t] += wp.float32(x[t]) * y[t]


@wp.func
def cube(x: wp.float64):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: wp.float64, adj_ret: wp.float64):
    # Right up to 1.
    wp.adjoint[x] += adj_ret * wp.float64(3.0) * x * wp.min(x, wp.float64(1.0))


@wp.kernel
def wrong_above_one(x: Floats, n: int, y: Floats):
    t = wp.tid()
    y[t] = cube(x[t])


@wp.struct
class Pair:
    values: wp.array(dtype=wp.float64)
    factor: wp.float64


@wp.kernel
def of_struct(pair: Pair, positions: wp.array(dtype=int), y: Floats):
    t = wp.tid()
    y[t] = pair.factor * pair.values[positions[t]] * pair.values[t]


@wp.kernel
def generic(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    t = wp.tid()
    y[t] = x[t] * x[t]


test_smooth = gradient_property(max_examples=5, max_side=3)(smooth)
test_logarithm = gradient_property(domains={"x": (0.25, 4.0)}, max_examples=10)(logarithm)
test_kinks = gradient_property(max_examples=10)(kinks)
test_in_place = gradient_property(max_examples=10, devices=["cpu"])(in_place)
test_of_struct = gradient_property(domains={"pair.factor": (1.0, 3.0)}, max_examples=10)(of_struct)
test_generic = gradient_property(dtype=wp.float16, max_examples=5)(generic)
test_right_part = gradient_property(domains={"x": (-2.0, 1.0)}, max_examples=10)(wrong_above_one)


def test_a_failure_shows_the_smallest_input_and_both_gradients() -> None:
    check = gradient_property()(wrong_above_one)
    assert check.__name__ == "wrong_above_one"
    with pytest.raises(AssertionError) as caught:
        check()
    text = str(caught.value)
    assert "the gradients of 'wrong_above_one' on 'cpu' differ" in text
    # One element, and the simplest number above one; the weight of the only output is 1 + cos(1) / 2.
    assert "dim = (1,)" in text
    assert "x = [2.0] (float64)" in text
    assert "n = 0" in text
    weight = 1.0 + 0.5 * np.cos(1.0)
    assert f"automatic {6.0 * weight:.9g}, differences {12.0 * weight:.9g}"[:20] in text
    assert "x, automatic:   [7.6" in text
    assert "x, differences: [15.2" in text


def test_assert_gradients_close() -> None:
    x = wp.array([0.5, 2.0], dtype=wp.float64)
    y = wp.zeros(2, dtype=wp.float64)
    assert_gradients_close(logarithm, 2, [x], [y])
    np.testing.assert_array_equal(x.numpy(), [0.5, 2.0])
    assert not x.requires_grad
    with pytest.raises(AssertionError, match=r"d loss / d x\[1\]: automatic"):
        assert_gradients_close(wrong_above_one, 2, [x, 0], [y])
    assert_gradients_close(wrong_above_one, 2, [x, 0], [y], rtol=0.6)
    assert_gradients_close(wrong_above_one, 2, [x, 0], [y], atol=10.0)
    with pytest.raises(ArgumentError, match="dim is required"):
        assert_gradients_close(logarithm, inputs=[x], outputs=[y])


def test_functions() -> None:
    def double_logarithm(x):
        y, z = wp.zeros_like(x), wp.zeros_like(x)
        wp.launch(logarithm, 2, inputs=[x], outputs=[y])
        wp.launch(logarithm, 2, inputs=[y], outputs=[z])
        return z

    x = wp.array([2.0, 3.0], dtype=wp.float64, requires_grad=True)
    assert_gradients_close(double_logarithm, inputs=[x])

    def wrong(x):
        y = wp.zeros_like(x)
        wp.launch(wrong_above_one, 2, inputs=[x, 0], outputs=[y])
        return y

    with pytest.raises(AssertionError, match="the gradients of 'wrong' differ"):
        assert_gradients_close(wrong, inputs=[x])


def test_a_gradient_that_is_not_a_number_fails() -> None:
    @wp.func
    def identity(x: wp.float64):
        return x

    @wp.func_grad(identity)
    def adj_identity(x: wp.float64, adj_ret: wp.float64):
        wp.adjoint[x] += (x - x) / (x - x)

    @wp.kernel
    def spoiled(x: Floats, y: Floats):
        t = wp.tid()
        y[t] = identity(x[t])

    with pytest.raises(AssertionError, match="automatic nan"):
        assert_gradients_close(spoiled, 1, [wp.ones(1, dtype=wp.float64)], [wp.zeros(1, dtype=wp.float64)])


def test_a_kernel_without_adjoint_raises() -> None:
    @wp.kernel(enable_backward=False)
    def forward_only(x: Floats, y: Floats):
        t = wp.tid()
        y[t] = x[t]

    with pytest.raises(AutogradError, match="enable_backward"):
        gradient_property(max_examples=2)(forward_only)()


def test_wrong_use() -> None:
    with pytest.raises(ArgumentError, match="decorates a kernel"):
        gradient_property()(lambda: None)
    with pytest.raises(ArgumentError, match="no parameter 'z'"):
        gradient_property(domains={"z": (0.0, 1.0)})(logarithm)()
    with pytest.raises(ArgumentError, match="low <= high"):
        gradient_property(domains={"x": (1.0, 0.0)})(logarithm)()


@given(st.data())
def test_arrays(data) -> None:
    dtype = data.draw(testing.dtypes("fiu", tensors=True))
    shape = data.draw(testing.shapes(min_dims=1, max_dims=3, max_side=3))
    drawn = data.draw(testing.arrays(dtype, shape, domain=[(0, 1), (3, 3)]))
    assert (drawn.dtype, drawn.shape) == (dtype, shape)
    values = drawn.numpy().astype(np.float64)
    assert ((values >= 0) & (values <= 1) | (values == 3)).all()
    assert drawn.requires_grad == (drawn.numpy().dtype.kind == "f")


@given(testing.arguments(smooth))
def test_arguments(drawn) -> None:
    assert list(drawn.values) == ["x", "rows", "n", "scale", "y"]
    rows = drawn.values["rows"]
    assert drawn.dim == rows.shape
    assert drawn.values["x"].shape == drawn.values["y"].shape == rows.shape[:1]
    assert 0 <= drawn.values["n"] <= rows.shape[0]
    assert isinstance(drawn.values["scale"], wp.vec2d)


@given(testing.arguments(of_struct, dim=1, strategies={"pair.factor": st.just(4.0)}))
def test_arguments_with_structs_and_positions(drawn) -> None:
    pair, positions = drawn.values["pair"], drawn.values["positions"].numpy()
    assert pair.factor == 4.0
    assert drawn.dim == (1,)
    assert ((positions >= 0) & (positions < pair.values.size)).all()
    assert "pair.values = [" in drawn.describe()


def test_float32_stays_within_its_domain() -> None:
    third = 1.0 / 3.0
    strategy = testing.values(wp.float32, (third, third + 1e-6))
    with pytest.raises(NoSuchExample):
        find(strategy, lambda value: not third <= value <= third + 1e-6)


def test_devices(monkeypatch) -> None:
    assert "cpu" in testing.available_devices()
    monkeypatch.setenv("WARP_TEST_DEVICES", "cpu")
    assert testing.available_devices() == ["cpu"]


def test_pytest_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_on_devices.py").write_text(
        "import warp as wp\n\n"
        "def test_zeros(warp_device):\n    assert wp.zeros(1, device=warp_device).numpy()[0] == 0\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-p", "warp_autograd.pytest_plugin"]
    for options in ([], ["--warp-device", "cpu"]):
        run = subprocess.run([*command, *options, "."], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert "test_zeros[cpu] PASSED" in run.stdout


def test_the_kit_needs_hypothesis_only_when_used() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None; import warp.testing\n"
        "try:\n    warp.testing.shapes()\nexcept ImportError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install hypothesis" in run.stdout
