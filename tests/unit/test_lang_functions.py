"""Functions for kernels: overloads, closures, changed parameters, custom adjoints, native snippets."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.ir.interp import run_function, run_kernel
from warp._src.ir.ops import Atomic, Invoke, Native, Space
from warp._src.ir.printer import print_function
from warp._src.ir.verify import verify
from warp._src.lang.source import build_kernel
from warp.errors import ArgumentError, KernelTypeError, UnsupportedSyntaxError

f = wp.float64
Doubles = wp.array(dtype=wp.float64)


def build(kernel: Any, types: Any = None) -> Any:
    function = build_kernel(kernel, types or [t for _, t in kernel.parameters])
    verify(function)
    return function


def results(kernel: Any, *args: Any, count: int = 6) -> list[float]:
    out = np.zeros(count)
    run_kernel(build(kernel), 1, [out, *args])
    return out.tolist()


@wp.func
def shifted(a: int):
    return a + 1


@wp.func
def shifted(a: f):  # noqa: F811 - an overload
    return a * 2.0


@wp.func
def shifted(a: wp.vec3d, k: int = 2):  # noqa: F811 - an overload
    return a[k]


@wp.func
def applied(function: Callable, x: f):
    return function(x)


@wp.func
def several(a: f, b: f) -> tuple[f, f]:
    return a * b, a - b


@wp.kernel
def calls(out: Doubles, x: f):
    v = wp.vec3d(1.0, 2.0, 3.0)
    out[0] = shifted(x)
    out[1] = f(shifted(3))
    out[2] = shifted(v, k=1) + 10.0 * shifted(v)
    out[3] = applied(shifted, x) + applied(wp.sin, x)
    p, q = several(x, f(2.0))
    out[4] = p + 100.0 * q


def test_overloads_defaults_and_functions_as_arguments() -> None:
    assert results(calls, 0.5)[:5] == [1.0, 4.0, 2.0 + 30.0, 1.0 + math.sin(0.5), 1.0 - 150.0]


@wp.func
def searched(x: Doubles, target: f) -> int:
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if x[i] + x[j] == target:
                return 10 * i + j
    return -1


@wp.func
def greatest_divisor(a: int, b: int):
    while True:
        if b == 0:
            return a
        a, b = b, a % b


@wp.func
def classified(x: f):
    if x < 0.0:
        return -1.0
    elif x > 1.0:
        if x > 2.0:
            return 2.0
        y = x
    else:
        return 0.5
    return y


@wp.kernel
def returning(out: Doubles, x: Doubles):
    out[0] = f(searched(x, f(5.0)))
    out[1] = f(searched(x, f(50.0)))
    out[2] = f(greatest_divisor(12, 18))
    out[3] = classified(f(-3.0)) + 10.0 * classified(f(0.7))
    out[4] = classified(f(1.5)) + 10.0 * classified(f(7.0))


def test_returns_from_loops_and_branches() -> None:
    assert results(returning, np.array([0.5, 2.0, 3.0]))[:5] == [12.0, -1.0, 6.0, -1.0 + 5.0, 1.5 + 20.0]


@wp.struct
class State:
    v: wp.vec3d
    a: wp.float64


@wp.struct
class Pair:
    first: State
    second: State


@wp.func
def kicked(s: State, x: f):
    if x > 0.0:
        s.v[1] += x
    return s


@wp.func
def kicked_twice(p: Pair, x: f):
    for _ in range(2):
        p.first = kicked(p.first, x)
    kicked(p.first, 100.0)
    p.second.a = p.first.v.y
    return p.second.a


@wp.func
def renewed(s: State, x: f):
    s.a = x
    if x > 1.0:
        s = State()
    s.a += 1.0
    return s.a


@wp.func
def scaled(v: wp.vec3d, m: wp.mat22d):
    m[0, 1] = v[1]
    v = v * 2.0
    v[0] = 100.0 + m[0, 1]
    return v


@wp.kernel
def changing(out: Doubles, x: f):
    p = Pair()
    p.first.v = wp.vec3d(1.0, 2.0, 3.0)
    p.second.a = 7.0
    out[0] = kicked_twice(p, x)
    out[1] = p.first.v.y + p.second.a
    out[2] = renewed(p.second, x) + 10.0 * p.second.a
    v = wp.vec3d(1.0, 2.0, 3.0)
    m = wp.mat22d(1.0, 1.0, 1.0, 1.0)
    w = scaled(v, m)
    out[3] = w[0] + 10.0 * v[0] + 1000.0 * m[0, 1]


def test_functions_change_copies_of_what_they_are_given() -> None:
    assert results(changing, 0.5)[:4] == [3.0, 9.0, 71.5, 1112.0]
    assert results(changing, 2.0)[:4] == [6.0, 9.0, 71.0, 1112.0]


def make(scale: float, inner: Any) -> Any:
    @wp.func
    def local(x: f):
        return inner(x) * scale

    @wp.kernel(module="unique")
    def kernel(out: Doubles, x: f):
        out[0] = local(x) + f(wp.static(scale * 10.0)) + f(math.pi)

    return kernel


def test_closures_keep_their_own_values() -> None:
    kernels = [make(scale, shifted) for scale in (2.0, 3.0, 5.0)]
    assert [results(kernel, 1.0)[0] for kernel in kernels] == [s * 2.0 + s * 10.0 + math.pi for s in (2.0, 3.0, 5.0)]


def test_annotations_that_are_strings_see_the_names_of_the_factory() -> None:
    def factory(dtype: Any) -> Any:
        @wp.kernel
        def kernel(x: wp.array(dtype=dtype)):
            x[0] = dtype(2.5)

        return kernel

    assert factory(wp.float32).parameters[0][1].dtype is wp.float32
    assert factory(wp.int32).parameters[0][1].dtype is wp.int32


def test_source_is_found_through_linecache() -> None:
    text = "import warp as wp\n@wp.kernel\ndef kernel(x: wp.array(dtype=float)):\n    x[0] = 3.0\n"
    linecache.cache["<cell>"] = (len(text), None, text.splitlines(keepends=True), "<cell>")
    namespace: dict[str, Any] = {"__name__": "cell"}
    exec(compile(text, "<cell>", "exec"), namespace)
    x = np.zeros(1, np.float32)
    run_kernel(build(namespace["kernel"]), 1, [x])
    assert x[0] == 3.0


@wp.kernel
def generic(x: wp.array(dtype=Any), s: wp.Float, n: int):
    i = wp.tid()
    total = x[i]
    for _ in range(n):
        total = total * x.dtype(2.0)
    x[i] = total + type(total)(1) * s


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_generic_kernels_are_built_for_concrete_types(dtype: Any) -> None:
    assert generic.is_generic
    types = generic.signature([wp.array(dtype=dtype), dtype, wp.int32])
    x = np.array([1.0, 3.0], dtype.dtype)
    run_kernel(build(generic, types), 2, [x, 0.5, 2])
    assert x.tolist() == [4.5, 12.5]


def test_a_signature_names_the_parameter_that_does_not_fit() -> None:
    with pytest.raises(ArgumentError, match=r"parameter 's' of kernel 'generic'.*Float.*int32"):
        generic.signature([wp.array(dtype=wp.float32), wp.int32, wp.int32])
    with pytest.raises(ArgumentError, match="takes 3 arguments"):
        generic.signature([wp.int32])


def test_overload_gives_the_kernel_of_concrete_types() -> None:
    by_dict = wp.overload(generic, {"x": wp.array(dtype=float), "s": float})
    by_list = wp.overload(generic, [wp.array(dtype=float), float, int])
    assert by_dict is by_list
    assert not by_dict.is_generic
    assert by_dict.parameters[1] == ("s", wp.float32)


@wp.func
def squared(x: f, weights: Doubles, i: int):
    return x * x * weights[i]


@wp.func_grad(squared)
def adj_squared(x: f, weights: Doubles, i: int, adj_ret: f):
    if x > 0.0:
        wp.adjoint[x] += 2.0 * x * weights[i] * adj_ret
    wp.adjoint[weights][i] += x * x * adj_ret


@wp.func_replay(squared)
def replay_squared(x: f, weights: Doubles, i: int):
    return x


@wp.kernel
def custom(x: Doubles, weights: Doubles):
    i = wp.tid()
    x[i] = squared(x[i], weights, i)


def test_custom_gradient_and_replay() -> None:
    (call,) = [op for op in build(custom).walk() if isinstance(op, Invoke)]
    function = call.function
    assert function.gradient_params == (0,)
    gradient = function.custom_gradient
    verify(gradient)
    assert [op.space for op in gradient.walk() if isinstance(op, Atomic)] == [Space.GRADIENT]
    assert run_function(gradient, [3.0, np.array([5.0]), 0, 2.0]) == (2.0 * 3.0 * 5.0 * 2.0,)
    assert run_function(gradient, [-3.0, np.array([5.0]), 0, 2.0]) == (0.0,)
    assert run_function(function.custom_replay, [7.0, np.array([5.0]), 0]) == (7.0,)


def test_a_custom_gradient_that_does_not_fit_is_refused_where_it_is_defined() -> None:
    with pytest.raises(KernelTypeError, match="custom gradient too_few"):

        @wp.func_grad(squared)
        def too_few(x: f, adj_ret: f):
            pass

    with pytest.raises(KernelTypeError, match="custom gradient too_many"):

        @wp.func_grad(squared)
        def too_many(x: f, weights: Doubles, i: int, adj_ret: f, adj_other: f):
            pass

    with pytest.raises(KernelTypeError, match="custom replay other"):

        @wp.func_replay(squared)
        def other(x: f):
            return x


@wp.func_native("float y = x * x; return y;", "adj_x += 2.0f * x * adj_ret;", replay_snippet="")
def native_square(x: float) -> float: ...


def test_native_functions_keep_their_texts() -> None:
    @wp.kernel
    def kernel(x: wp.array(dtype=float)):
        x[0] = native_square(x[0])

    (op,) = [op for op in build(kernel).walk() if isinstance(op, Native)]
    assert op.names == ("x",)
    assert op.snippet.startswith("float y")
    assert op.adjoint_snippet == "adj_x += 2.0f * x * adj_ret;"
    assert op.replay_snippet == ""
    with pytest.raises(KernelTypeError, match="return type"):

        @wp.func_native("return x;")
        def unannotated(x: float): ...


def test_functions_run_on_the_host() -> None:
    assert shifted(3) == 4
    assert shifted(0.5) == 1.0
    assert applied(shifted, 0.5) == 1.0
    with pytest.raises(UnsupportedSyntaxError, match="native"):
        native_square(1.0)
    with pytest.raises(UnsupportedSyntaxError, match=r"wp\.launch"):
        custom()
    with pytest.raises(UnsupportedSyntaxError, match="only be used in kernels"):
        wp.tid()


def test_the_same_kernel_is_built_the_same_way_twice() -> None:
    assert print_function(build(changing)) == print_function(build(changing))


def test_module_options() -> None:
    options = wp.get_module_options()
    assert options["enable_backward"] is True
    module = wp.get_module("tests.some_module")
    wp.set_module_options({"max_unroll": 3}, module)
    assert wp.get_module_options(module)["max_unroll"] == 3
    with pytest.raises(ArgumentError, match="did you mean 'max_unroll'"):
        wp.set_module_options({"max_unrol": 3}, module)

    @wp.kernel(enable_backward=False, module=module)
    def kernel(x: Doubles):
        x[0] = 1.0

    assert kernel.option("enable_backward") is False
    assert kernel.option("max_unroll") == 3
    assert kernel in module.kernels
