"""Jacobians by automatic differentiation and by differences: values in closed form, keys, masks, limits, structs."""

from __future__ import annotations

import numpy as np
import pytest

import warp as wp
import warp.autograd
from warp.errors import ArgumentError, AutogradError

Floats = wp.array(dtype=wp.float64)


@wp.kernel
def mix(
    a: wp.array(dtype=float), b: wp.array(dtype=wp.vec3), out1: wp.array(dtype=wp.vec2), out2: wp.array(dtype=float)
):
    t = wp.tid()
    out1[t] = wp.vec2(a[t] * b[t][0], b[t][1] - b[t][2])
    out2[t] = a[t] * a[t]


@wp.kernel
def scaled(x: Floats, factor: wp.float64, y: Floats):
    t = wp.tid()
    y[t] = factor * x[t] * x[t]


@wp.kernel
def bump(x: Floats):
    t = wp.tid()
    x[t] += wp.float64(1.0)


@wp.kernel
def accumulated(x: Floats, sum: Floats):
    wp.atomic_add(sum, 0, x[wp.tid()])


@wp.struct
class Pair:
    left: wp.array(dtype=wp.float64)
    factor: wp.float64
    right: wp.array(dtype=wp.float64)


@wp.kernel
def struct_product(n: int, pair: Pair, other: Floats, result: Pair):
    t = wp.tid()
    result.left[t] = pair.factor * pair.left[t] * pair.right[t] * other[t]


def floats(values: object, requires_grad: bool = True) -> wp.array:
    return wp.array(values, dtype=wp.float64, requires_grad=requires_grad)


def mix_arguments() -> tuple[list[wp.array], list[wp.array]]:
    a = wp.array([2.0, -1.0], dtype=float, requires_grad=True)
    b = wp.array([[3.0, 1.0, 2.0], [-4.0, -1.0, 0.0]], dtype=wp.vec3, requires_grad=True)
    outputs = [wp.zeros(2, dtype=wp.vec2, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)]
    return [a, b], outputs


MIX = {
    (0, 0): [[3, 0], [0, 0], [0, -4], [0, 0]],
    (0, 1): [[4, 0], [0, -2]],
    (1, 0): [[2, 0, 0, 0, 0, 0], [0, 1, -1, 0, 0, 0], [0, 0, 0, -1, 0, 0], [0, 0, 0, 0, 1, -1]],
    (1, 1): np.zeros((2, 6)),
}


@pytest.mark.parametrize("method", [wp.autograd.jacobian, wp.autograd.jacobian_fd])
def test_all_pairs(method) -> None:
    inputs, outputs = mix_arguments()
    found = method(mix, dim=2, inputs=inputs, outputs=outputs)
    assert list(found) == list(MIX)
    for key, expected in MIX.items():
        assert found[key].dtype is wp.float32
        np.testing.assert_allclose(found[key].numpy(), expected, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("mask", [[("a", "out1"), ("b", "out2")], [(0, 0), (1, 1)], [("a", 0), (1, "out2")]])
def test_keys_are_indices_whatever_the_mask_uses(mask) -> None:
    inputs, outputs = mix_arguments()
    found = wp.autograd.jacobian(mix, 2, inputs, outputs, input_output_mask=mask)
    assert list(found) == [(0, 0), (1, 1)]
    np.testing.assert_array_equal(found[0, 0].numpy(), MIX[0, 0])


@pytest.mark.parametrize("mask", [[("a", "nothing")], [(7, 0)], ["a"]])
def test_a_wrong_mask_is_an_error(mask) -> None:
    inputs, outputs = mix_arguments()
    with pytest.raises(ArgumentError, match="input_output_mask"):
        wp.autograd.jacobian(mix, 2, inputs, outputs, input_output_mask=mask)


def test_limits_leave_nan() -> None:
    inputs, outputs = mix_arguments()
    rows = wp.autograd.jacobian(mix, 2, inputs, outputs, max_outputs_per_var=3)[1, 0].numpy()
    np.testing.assert_array_equal(rows[:3], MIX[1, 0][:3])
    assert np.isnan(rows[3:]).all()
    columns = wp.autograd.jacobian_fd(mix, 2, inputs, outputs, max_inputs_per_var=4)[1, 0].numpy()
    assert np.isfinite(columns[:, :4]).all()
    assert np.isnan(columns[:, 4:]).all()


def test_arguments_stay_as_they_are_and_tapes_stay_valid() -> None:
    x, y = floats([1.0, 2.0]), floats([7.0, 8.0])
    with wp.Tape() as tape:
        wp.launch(scaled, 2, inputs=[x, 3.0], outputs=[y])
    x.grad.fill_(5.0)
    wp.autograd.jacobian(scaled, 2, [x, 3.0], [y])
    wp.autograd.jacobian_fd(scaled, 2, [x, 3.0], [y])
    np.testing.assert_array_equal(x.grad.numpy(), [5.0, 5.0])
    np.testing.assert_array_equal(y.numpy(), [3.0, 12.0])
    tape.backward(grads={y: floats([1.0, 1.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [11.0, 17.0])


def test_inside_a_recording_tape() -> None:
    x, y = floats([1.0, 2.0]), floats([0.0, 0.0])
    with wp.Tape() as tape:
        found = wp.autograd.jacobian(scaled, 2, [x, 3.0], [y])
    np.testing.assert_array_equal(found[0, 0].numpy(), [[6.0, 0.0], [0.0, 12.0]])
    assert tape.events == ()


@pytest.mark.parametrize("method", [wp.autograd.jacobian, wp.autograd.jacobian_fd])
def test_arrays_in_structs(method) -> None:
    left, right, other, out = floats([2.0, 3.0]), floats([5.0, 7.0]), floats([1.0, 2.0]), floats([0.0, 0.0])
    pair, result = Pair(left=left, factor=10.0, right=right), Pair(left=out)
    found = method(struct_product, 2, [1, pair, other], [result])
    # Members are numbered after the last argument.
    assert sorted(found) == [(2, 1), (3, 1), (4, 1)]
    np.testing.assert_allclose(found[2, 1].numpy(), np.diag([100.0, 210.0]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[3, 1].numpy(), np.diag([50.0, 140.0]), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[4, 1].numpy(), np.diag([20.0, 60.0]), rtol=1e-6, atol=1e-6)
    (only,) = method(struct_product, 2, [1, pair, other], [result], input_output_mask=[("pair.right", "result.left")])
    assert only == (4, 1)


def test_output_that_accumulates_starts_from_the_same_value_each_time() -> None:
    x, total = floats([1.0, 2.0, 3.0]), floats([100.0])
    found = wp.autograd.jacobian_fd(accumulated, 3, [x], [total])
    np.testing.assert_allclose(found[0, 0].numpy(), np.ones((1, 3)), rtol=1e-6)
    assert total.numpy()[0] == 100.0


@pytest.mark.parametrize("method", [wp.autograd.jacobian, wp.autograd.jacobian_fd])
def test_one_array_as_input_and_output(method) -> None:
    x = floats([1.0, 2.0])
    found = method(scaled, 2, [x, 0.5], [x])
    np.testing.assert_allclose(found[0, 0].numpy(), np.diag([1.0, 2.0]), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])


@pytest.mark.parametrize("method", [wp.autograd.jacobian, wp.autograd.jacobian_fd])
def test_function_of_several_launches_that_changes_its_input(method) -> None:
    def function(x, factor):
        y = wp.zeros_like(x)
        z = wp.zeros_like(x)
        wp.launch(bump, 2, inputs=[x])
        wp.launch(scaled, 2, inputs=[x, factor], outputs=[y])
        wp.launch(scaled, 2, inputs=[y, 1.0], outputs=[z])
        return y, z

    x = floats([1.0, 2.0])
    x.grad.fill_(9.0)
    found = method(function, inputs=[x, 0.5])
    np.testing.assert_allclose(found[0, 0].numpy(), np.diag([2.0, 3.0]), rtol=1e-6, atol=1e-6)
    # z = (x + 1)^4 / 4
    np.testing.assert_allclose(found[0, 1].numpy(), np.diag([8.0, 27.0]), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(x.numpy(), [1.0, 2.0])
    np.testing.assert_array_equal(x.grad.numpy(), [9.0, 9.0])


def test_function_that_writes_given_outputs() -> None:
    x, y = floats([1.0, 3.0]), floats([0.0, 0.0])

    def function(x):
        wp.launch(scaled, 2, inputs=[x, 1.0], outputs=[y])

    found = wp.autograd.jacobian(function, inputs=[x], outputs=[y])
    np.testing.assert_array_equal(found[0, 0].numpy(), np.diag([2.0, 6.0]))


def test_float16_takes_a_larger_step() -> None:
    @wp.kernel
    def square(x: wp.array(dtype=wp.float16), y: wp.array(dtype=wp.float16)):
        t = wp.tid()
        y[t] = x[t] * x[t]

    x = wp.array([1.0, 4.0], dtype=wp.float16, requires_grad=True)
    y = wp.zeros_like(x)
    found = wp.autograd.jacobian_fd(square, 2, [x], [y])
    np.testing.assert_allclose(found[0, 0].numpy(), np.diag([2.0, 8.0]), rtol=0.03)


def test_metadata() -> None:
    inputs, outputs = mix_arguments()
    described = wp.autograd.FunctionMetadata()
    assert described.is_empty
    wp.autograd.jacobian(mix, 2, inputs, outputs, metadata=described)
    assert (described.key, described.input_labels, described.output_labels) == ("mix", ["a", "b"], ["out1", "out2"])
    assert described.input_dtypes == [wp.float32, wp.vec3]
    assert described.output_strides == [(8,), (4,)]
    assert described == wp.autograd.FunctionMetadata.from_kernel(mix, inputs, outputs)
    described.input_labels = ["first", "second"]
    wp.autograd.jacobian(mix, 2, inputs, outputs, metadata=described)
    assert described.input_labels == ["first", "second"]
    scalars = wp.autograd.FunctionMetadata.from_kernel(scaled, [floats([1.0]), 2.0], [])
    assert [scalars.input_is_array(index) for index in (0, 1)] == [True, False]


def test_old_spelling() -> None:
    inputs, outputs = mix_arguments()
    for method in (wp.autograd.jacobian, wp.autograd.jacobian_fd):
        with pytest.warns(DeprecationWarning, match="function"):
            found = method(kernel=mix, dim=2, inputs=inputs, outputs=outputs)
        assert list(found) == list(MIX)


def test_what_is_missing_is_named() -> None:
    x, y = floats([1.0]), floats([0.0])
    for arguments, message in (
        ({"dim": 1, "outputs": [y]}, "inputs"),
        ({"inputs": [x, 1.0], "outputs": [y]}, "dim"),
        ({"dim": 1, "inputs": [x, 1.0]}, "outputs"),
        ({"dim": 1, "inputs": [x], "outputs": [y]}, "parameters"),
        ({"dim": 1, "inputs": [floats([1.0], False), 1.0], "outputs": [y]}, "no input"),
        ({"dim": 1, "inputs": [x, 1.0], "outputs": [floats([1.0], False)]}, "no output"),
    ):
        with pytest.raises(ArgumentError, match=message):
            wp.autograd.jacobian(scaled, **arguments)
    with pytest.raises(ArgumentError, match="must return"):
        wp.autograd.jacobian(lambda x: 3, inputs=[x])


def test_a_kernel_without_adjoint_raises() -> None:
    @wp.kernel(enable_backward=False)
    def forward_only(x: Floats, y: Floats):
        t = wp.tid()
        y[t] = wp.float64(3.0) * x[t]

    x, y = floats([1.0, 2.0]), floats([0.0, 0.0])
    with pytest.raises(AutogradError, match="enable_backward"):
        wp.autograd.jacobian(forward_only, 2, [x], [y])
    found = wp.autograd.jacobian_fd(forward_only, 2, [x], [y])
    np.testing.assert_allclose(found[0, 0].numpy(), np.diag([3.0, 3.0]), rtol=1e-6)


def test_an_output_that_is_not_written_has_zero_rows() -> None:
    @wp.kernel
    def partial(x: Floats, y: Floats, z: Floats):
        y[0] = x[0]

    x, y, z = floats([1.0]), floats([0.0]), floats([0.0])
    found = wp.autograd.jacobian(partial, 1, [x], [y, z])
    assert found[0, 0].numpy() == 1.0
    assert found[0, 1].numpy() == 0.0
