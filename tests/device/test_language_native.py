"""Native functions: what snippets may use, and what people read when one does not compile."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import numpy as np
import pytest

import warp as wp
from warp._src.emit.callees import LINE_OF_UNIT, restored_lines
from warp.errors import KernelTypeError, ToolchainError, UnsupportedSyntaxError

T = TypeVar("T")
Floats = wp.array(dtype=float)


@wp.func_native("""
    float* p = &x[0];
    p[i] = 2.0f * x[i];
    float* q = x;
    q[i] += 1.0f;
    atomicAdd(&y[0], p[i]);
    atomicAdd(y, 1);
""")
def through_pointers(x: Floats, y: Floats, i: int): ...


@wp.kernel
def pointers(x: Floats, y: Floats):
    through_pointers(x, y, wp.tid())


def test_arrays_are_pointers() -> None:
    x, y = wp.array([1.0, 2.0], dtype=float), wp.zeros(1, dtype=float)
    wp.launch(pointers, 2, inputs=[x, y])
    assert x.numpy().tolist() == [3, 5]
    assert y.numpy().tolist() == [10]


@wp.func_native("""
    wp::vec3 r = 2.0f * v + wp::vec3(1.0f, 0.0f, m(0, 1));
    r[1] += wp::dot(v, v) / 2;
    r += wp::quat_rotate(wp::quatf(0.0f, 0.0f, 0.0f, 1.0f), v);
    return (m * wp::vec2(1.0f, 1.0f))[0] == 3.0f ? r : wp::vec3();
""")
def with_vectors(v: wp.vec3, m: wp.mat22) -> wp.vec3: ...


@wp.func_native("""
    int32_t whole = (int32_t)floorf(x);
    size_t count = 2;
    float s = sinf(x) + powf(x, 2.0f) + fmaxf(x, 3.0f) + fabs(-x) + (float)M_PI + max(whole, 1) + copysign(1.0f, -x);
    if (isnan(s) || !isfinite(s)) printf("never %f\\n", s);
    return s + (float)count;
""")
def with_mathematics(x: float) -> float: ...


@wp.kernel
def values(points: wp.array(dtype=wp.vec3), y: Floats):
    points[0] = with_vectors(points[0], wp.mat22(1.0, 2.0, 3.0, 4.0))
    y[0] = with_mathematics(2.5)


def test_snippets_know_warp_types_and_c_mathematics() -> None:
    points, y = wp.array([[1.0, 2.0, 3.0]], dtype=wp.vec3), wp.zeros(1, dtype=float)
    wp.launch(values, 1, inputs=[points, y])
    assert points.numpy().tolist() == [[2 + 1 + 1, 4 + 7 + 2, 6 + 2 + 3]]
    np.testing.assert_allclose(y.numpy()[0], np.sin(2.5) + 6.25 + 3 + 2.5 + np.pi + 2 - 1 + 2, rtol=1e-6)


@wp.func_native("return x * x;", "adj_x += adj_ret * x * 2;")
def square(x: T) -> T: ...


@wp.kernel
def squares(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = square(x[i])


@pytest.mark.parametrize("dtype", [wp.float32, wp.float64])
def test_generic_native_functions(dtype: Any) -> None:
    x = wp.array([1.0, 3.0], dtype=dtype, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(squares, 2, inputs=[x], outputs=[y])
    tape.backward(grads={y: wp.ones(2, dtype=dtype)})
    assert x.grad.numpy().tolist() == [2, 6]


def launch_snippet(snippet: str, adjoint: str | None = None) -> None:
    @wp.func_native(snippet, adjoint)
    def native(x: float) -> float: ...

    @wp.kernel
    def kernel(y: Floats):
        y[0] = native(y[0])

    y = wp.ones(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, 1, inputs=[y])
    tape.backward(grads={y: wp.ones(1, dtype=float)})


@pytest.mark.parametrize(
    ("snippet", "adjoint", "words"),
    [
        ("\n    float a = x;\n    float b = a +;\n    return b;\n", None, r"native function native:2:\d+: error"),
        ("return missing(x);", None, r"native function native:1:\d+: error:.*missing"),
        ("return x;", "adj_x += oops;", r"native function native:1:\d+: error:.*oops"),
        ("extern float elsewhere(float); return elsewhere(x);", None, "undefined (symbol|reference).*elsewhere"),
    ],
)
def test_the_compiler_counts_the_lines_of_the_snippet(snippet: str, adjoint: str | None, words: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        launch_snippet(snippet, adjoint)
    assert re.search(words, str(caught.value)), caught.value


def test_lines_after_a_snippet_are_those_of_the_unit() -> None:
    assert restored_lines(f"a\n{LINE_OF_UNIT}\nb") == 'a\n#line 3 "unit.cpp"\nb'


@pytest.mark.cpu
@pytest.mark.parametrize("word", ["__shared__ int s[4];", "__syncthreads();", "int t = threadIdx.x;"])
def test_what_only_cuda_has_never_reaches_the_compiler(word: str) -> None:
    with pytest.raises(UnsupportedSyntaxError, match=r"native function 'native' uses .*, which only CUDA has"):
        launch_snippet(f"{word} return x;")
    with pytest.raises(ToolchainError):
        launch_snippet("return x; // __shared__\n+;")


def test_results_are_annotated() -> None:
    with pytest.raises(KernelTypeError, match="return type must be annotated"):
        wp.func_native("if (x > 0) { return x; }\nreturn -x;")(_without_result)
    with pytest.raises(KernelTypeError, match="has no return statement"):
        wp.func_native("x + 1; // return x")(_with_result)


def _without_result(x: float): ...  # type: ignore[no-untyped-def]  # the case


def _with_result(x: float) -> float: ...
