"""Arguments of launches: what is refused, by which name, and that nothing is touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warp as wp
from warp.errors import ArgumentError


@wp.struct
class Pair:
    a: float
    b: int


@wp.kernel
def scale(x: wp.array(dtype=float), factor: float, count: int, y: wp.array(dtype=float)):
    i = wp.tid()
    if i < count:
        y[i] = factor * x[i]


@wp.kernel
def lengths(v: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.length(v[i])


@wp.kernel
def fields(p: Pair, y: wp.array(dtype=float)):
    y[0] = p.a * float(p.b)


def vector(*numbers: float) -> Any:
    return wp.array(numbers, dtype=float)


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (lambda: [vector(1), 2.0, 1], ["takes 4 arguments", "3 were given"]),
        (lambda: [vector(1), "two", 1, vector(0)], ["'factor'", "float32", "str"]),
        (lambda: [vector(1), 2.0, 1.5, vector(0)], ["'count'", "int32", "float"]),
        (lambda: [vector(1), 2.0, 2**40, vector(0)], ["'count'", "int32"]),
        (lambda: [3.0, 2.0, 1, vector(0)], ["'x'", "array(dtype=float32", "float"]),
        (lambda: [wp.zeros(1, dtype=wp.float64), 2.0, 1, vector(0)], ["'x'", "float32", "float64"]),
        (lambda: [wp.zeros((1, 1), dtype=float), 2.0, 1, vector(0)], ["'x'", "ndim=1", "ndim=2"]),
        (lambda: [vector(1), 2.0, 1, np.zeros(1)], ["'y'", "float32", "float64"]),
        (lambda: [vector(1), 2.0, 1, [0.0]], ["'y'", "array(dtype=float32", "list"]),
    ],
)
def test_a_wrong_argument_is_named_with_both_types(args: Any, parts: list[str]) -> None:
    given = args()
    target = given[-1]
    before = np.array(target, copy=True) if isinstance(target, (wp.array, np.ndarray)) else None
    with pytest.raises(ArgumentError) as caught:
        wp.launch(scale, dim=1, inputs=given)
    assert "scale" in str(caught.value)
    for part in parts:
        assert part in str(caught.value)
    if before is not None:
        np.testing.assert_array_equal(np.asarray(target), before)


def test_read_only_memory_is_read_but_never_written() -> None:
    fixed = np.array([1, 2], dtype=np.float32)
    fixed.flags.writeable = False
    y = vector(0, 0)
    wp.launch(scale, dim=2, inputs=[fixed, 2.0, 2, y])
    np.testing.assert_array_equal(y.numpy(), [2, 4])
    with pytest.raises(ArgumentError, match=r"'y'.*read-only"):
        wp.launch(scale, dim=2, inputs=[y, 2.0, 2, fixed])


def test_numpy_arrays_are_written_in_place_and_trailing_dimensions_fill_vectors() -> None:
    points = np.array([[3, 4, 0], [0, 0, 2]], dtype=np.float32)
    result = np.zeros(2, dtype=np.float32)
    wp.launch(lengths, dim=2, inputs=[points], outputs=[result])
    np.testing.assert_allclose(result, [5, 2])


@pytest.mark.parametrize(
    ("shape", "strides", "is_refused"),
    [((4,), (0,), True), ((4,), (2,), True), ((4,), (8,), False), ((1,), (0,), False)],
)
def test_memory_that_overlaps_itself_is_not_written(shape: Any, strides: Any, is_refused: bool) -> None:
    storage = np.zeros(64, dtype=np.uint8)
    y = wp.array(ptr=storage.ctypes.data, dtype=float, shape=shape, strides=strides, owner=storage)
    if is_refused:
        with pytest.raises(ArgumentError, match=r"'y'.*share memory"):
            wp.launch(scale, dim=shape, inputs=[vector(1, 2, 3, 4), 1.0, 4, y])
        assert not storage.any()
    else:
        wp.launch(scale, dim=shape, inputs=[vector(1, 2, 3, 4), 1.0, 4, y])
        np.testing.assert_array_equal(y.numpy(), [1, 2, 3, 4][: shape[0]])


def test_structs_are_packed_by_value() -> None:
    pair = Pair()
    pair.a, pair.b = 1.5, 4
    y = vector(0)
    wp.launch(fields, dim=1, inputs=[pair, y])
    assert y.numpy()[0] == 6.0
    with pytest.raises(ArgumentError, match=r"'p'.*Pair"):
        wp.launch(fields, dim=1, inputs=[1.0, y])


@pytest.mark.parametrize("dim", [-1, (1, 1, 1, 1, 1), 2**31, 1.5, "3", (), None, True])
def test_dimensions_that_are_none(dim: Any) -> None:
    with pytest.raises(ArgumentError, match="dim"):
        wp.launch(scale, dim=dim, inputs=[vector(1), 1.0, 1, vector(0)])


def test_an_adjoint_launch_needs_one_adjoint_per_argument() -> None:
    x, y = vector(1), vector(0)
    with pytest.raises(ArgumentError, match="adj_inputs has 0 entries"):
        wp.launch(scale, 1, inputs=[x, 1.0, 1], outputs=[y], adj_inputs=[], adj_outputs=[], adjoint=True)
    wrong = [wp.zeros(1, dtype=wp.vec3), None, None]
    with pytest.raises(ArgumentError, match=r"parameter 'x' must be float32"):
        wp.launch(scale, 1, inputs=[x, 1.0, 1], outputs=[y], adj_inputs=wrong, adj_outputs=[y], adjoint=True)


def test_an_adjoint_launch_adds_to_its_inputs_and_never_writes_its_seeds() -> None:
    x, y = vector(1, 2), vector(0, 0)
    gradient, seed = vector(10, 10), vector(3, 5)
    wp.launch(
        scale,
        2,
        inputs=[x, 2.0, 2],
        outputs=[y],
        adj_inputs=[gradient, None, None],
        adj_outputs=[seed],
        adjoint=True,
    )
    np.testing.assert_array_equal(gradient.numpy(), [16, 20])
    np.testing.assert_array_equal(seed.numpy(), [3, 5])
    assert not x.requires_grad


def test_recorded_launches_have_arguments_of_their_own() -> None:
    x, y, z = vector(1, 2), vector(0, 0), vector(0, 0)
    command = wp.launch(scale, 2, inputs=[x, 2.0, 2, y], record_cmd=True)
    command.launch()
    command.set_param_by_name("factor", 3.0)
    command.set_param_at_index(3, z)
    command.launch()
    np.testing.assert_array_equal(y.numpy(), [2, 4])
    np.testing.assert_array_equal(z.numpy(), [3, 6])
    with pytest.raises(ArgumentError, match="no parameter 'speed'"):
        command.set_param_by_name("speed", 1.0)
    with pytest.raises(ArgumentError, match="'factor'"):
        command.set_param_by_name("factor", "fast")
    command.launch()
    np.testing.assert_array_equal(z.numpy(), [3, 6])
