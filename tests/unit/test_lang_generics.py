"""Generic kernels and functions, defaults, custom gradients of generic functions, and options, without a compiler."""

from __future__ import annotations

import gc
import weakref
from typing import Any, TypeVar

import numpy as np
import pytest

import warp as wp
from warp._src.builtins.declare import Literal
from warp._src.ir.interp import run_kernel
from warp._src.ir.ops import Invoke
from warp._src.ir.verify import verify
from warp._src.lang.source import build_kernel
from warp._src.types.arrays import ArrayType
from warp.errors import ArgumentError, KernelTypeError

T = TypeVar("T")
AnyVector = wp.types.vector(length=Any, dtype=wp.Float)


def run(kernel: Any, types: Any, *args: Any) -> None:
    function = build_kernel(kernel, types)
    verify(function)
    run_kernel(function, 1, list(args))


@wp.func
def scaled(factor: wp.Float, value: wp.Float):
    return factor * value


@wp.func
def added(a: T, b: T):
    return a + b


@wp.func
def squared_length(v: AnyVector):
    return wp.dot(v, v)


@wp.kernel
def generic(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    y[0] = scaled(2.0, x[0])
    y[1] = type(x[0])(3.0) + x.dtype(1.0)


@wp.kernel
def of_vectors(x: wp.array(dtype=AnyVector), y: wp.array(dtype=wp.Float)):
    y[0] = squared_length(x[0])


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_a_literal_takes_the_type_of_a_generic_argument(dtype: Any) -> None:
    x, y = np.array([1.5, 0], dtype.dtype), np.zeros(2, dtype.dtype)
    run(generic, [ArrayType(dtype, 1)] * 2, x, y)
    assert y.tolist() == [3, 4]


def test_vectors_of_any_length() -> None:
    for vector in (wp.vec2, wp.vec3d):
        y = np.zeros(1, vector.scalar.dtype)
        run(of_vectors, [ArrayType(vector, 1), ArrayType(vector.scalar, 1)], np.ones((1, vector.length)), y)
        assert y[0] == vector.length


def test_a_number_of_the_launch_takes_the_type_of_an_array() -> None:
    @wp.kernel
    def kernel(factor: T, x: wp.array(dtype=T)):
        x[0] = factor * x[0]

    number = wp.Kernel.signature(kernel, [Literal(2.0), ArrayType(wp.float64, 1)])
    assert number == (wp.float64, ArrayType(wp.float64, 1))
    with pytest.raises(ArgumentError, match=r"parameter 'factor'.*float32 literal 2.0"):
        kernel.signature([Literal(2.0), ArrayType(wp.int32, 1)])


def test_a_type_variable_means_one_type_and_the_public_ones_any() -> None:
    @wp.kernel
    def mixed(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float32)):
        x[0] = added(x[0], y[0])

    with pytest.raises(KernelTypeError, match="'b' must be T, got float32"):
        build_kernel(mixed, [t for _, t in mixed.parameters])

    @wp.func
    def widened(a: wp.Float, b: wp.Float):
        return wp.float64(a) + wp.float64(b)

    @wp.kernel
    def independent(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float32)):
        x[0] = widened(x[0], y[0])

    x = np.array([1.0])
    run(independent, [t for _, t in independent.parameters], x, np.array([2.0], np.float32))
    assert x[0] == 3


def test_overload_forms() -> None:
    @wp.kernel
    def kernel(factor: Any, x: wp.array(dtype=Any)):
        x[0] = x[0] * factor

    listed = wp.overload(kernel, [wp.float64, wp.array(dtype=wp.float64)])
    named = wp.overload(kernel, {"factor": float, "x": wp.array(dtype=wp.vec3)})
    assert wp.overload(kernel, [wp.float64, wp.array(dtype=wp.float64)]) is listed
    assert [t for _, t in named.parameters] == [wp.float32, ArrayType(wp.vec3, 1)]

    @wp.overload
    def kernel(factor: float, x: wp.array(dtype=wp.vec2)): ...

    assert len(kernel.overloads) == 3
    with pytest.raises(ArgumentError, match="no parameter 'y'"):
        wp.overload(kernel, {"y": float})


@wp.func
def generic_root(x: wp.Float):
    return wp.sqrt(x)


@wp.func_grad(generic_root)
def adj_generic_root(x: wp.Float, adj_ret: wp.Float):
    if x > type(x)(0.0):
        wp.adjoint[x] += adj_ret / (type(x)(2.0) * wp.sqrt(x))


@wp.func_grad(generic_root)
def adj_root_of_double(x: wp.float64, adj_ret: wp.float64):
    wp.adjoint[x] += adj_ret * wp.float64(100.0)


@wp.func_replay(generic_root)
def replay_generic_root(x: wp.Float):
    return x


@pytest.mark.parametrize(("dtype", "name"), [(wp.float32, "adj_generic_root"), (wp.float64, "adj_root_of_double")])
def test_custom_gradients_of_generic_functions(dtype: Any, name: str) -> None:
    @wp.kernel
    def kernel(x: wp.array(dtype=Any)):
        x[0] = generic_root(x[0])

    function = build_kernel(kernel, [ArrayType(dtype, 1)])
    (call,) = [op for op in function.walk() if isinstance(op, Invoke)]
    assert call.function.custom_gradient.name == name
    assert call.function.custom_replay.name == "replay_generic_root"


def test_a_custom_gradient_of_another_type_is_refused_at_its_definition() -> None:
    @wp.func
    def square(x: float):
        return x * x

    with pytest.raises(KernelTypeError, match="parameter 'adj' is vec3f, the result it belongs to is float32"):

        @wp.func_grad(square)
        def adj_square(x: float, adj: wp.vec3): ...

    with pytest.raises(KernelTypeError, match="must take the 1 input and 1 adjoint"):

        @wp.func_grad(square)
        def adj_nothing(x: float): ...

    with pytest.raises(KernelTypeError, match="parameter 'x' is int32"):

        @wp.func_replay(square)
        def replay_square(x: int):
            return x


def test_kernel_options() -> None:
    @wp.kernel(name="other", launch_bounds=128, grid_stride=False, cuda_max_registers=64, enable_backward=False)
    def kernel(x: wp.array(dtype=float), factor: float = 2.0): ...

    assert kernel.key == "other"
    assert kernel.options == {
        "launch_bounds": (128,),
        "grid_stride": False,
        "cuda_max_registers": 64,
        "enable_backward": False,
    }
    assert kernel.complete(["x"]) == ["x", 2.0]
    assert kernel.complete([]) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"enable_backwards": True}, "did you mean 'enable_backward'"),
        ({"launch_bounds": "many"}, "launch_bounds"),
        ({"launch_bounds": (256, 1, 1)}, "launch_bounds"),
        ({"grid_stride": 1}, "grid_stride must be True, False or None"),
        ({"cluster_dim": 0}, "cluster_dim must be a positive integer"),
        ({"name": "two words"}, "name must be an identifier"),
        ({"module_options": {"fast_math": True}}, 'module="unique"'),
        ({"module": "unique", "module_options": {"fastmath": True}}, "did you mean 'fast_math'"),
    ],
)
def test_options_that_do_not_exist(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):

        @wp.kernel(**options)
        def kernel(x: wp.array(dtype=float)): ...


def test_the_nearest_enable_backward_decides() -> None:
    def make(option: bool | None) -> Any:
        @wp.kernel(module="unique", enable_backward=option)
        def kernel(x: wp.array(dtype=float)): ...

        return kernel

    plain = make(None)
    assert plain.option("enable_backward") is True
    plain.module.set_options({"enable_backward": False})
    assert plain.option("enable_backward") is False
    opted_in = make(True)
    opted_in.module.set_options({"enable_backward": False})
    assert opted_in.option("enable_backward") is True


def test_kernels_of_a_factory_share_their_source_and_are_collected() -> None:
    def make(value: float) -> Any:
        @wp.kernel
        def kernel(x: wp.array(dtype=float)):
            x[0] = value

        return kernel

    first, second = make(1.0), make(2.0)
    assert first.definition.text is second.definition.text
    for kernel, value in ((first, 1.0), (second, 2.0)):
        x = np.zeros(1, np.float32)
        run(kernel, [ArrayType(wp.float32, 1)], x)
        assert x[0] == value
    gone = weakref.ref(first)
    del first, kernel
    gc.collect()
    assert gone() is None
