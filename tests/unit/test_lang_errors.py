"""Messages for what kernels do not understand: kind, words, line, caret."""

from __future__ import annotations

import linecache
from typing import Any

import pytest

import warp as wp
from warp._src.lang.source import build_kernel
from warp._src.types.arrays import ArrayType
from warp.errors import CompileError, KernelTypeError, UnknownNameError, UnsupportedSyntaxError

PRELUDE = """import math
import warp as wp
f = wp.float64

def plain(a):
    return a

@wp.struct
class S:
    a: f
    b: f

@wp.func
def partial(a: f):
    if a > 0.0:
        return a

@wp.func
def endless(a: f):
    return endless(a)

@wp.func
def faulty(a: f):
    return a + 1

@wp.func
def half(a: f):
    return a * 0.5

@wp.func
def read(x: wp.array(dtype=wp.float64), i: int):
    return x[i]

@wp.func_grad(read)
def adj_read(x: wp.array(dtype=wp.float64), i: int, adj_ret: f):
    gradient = wp.adjoint[x]

@wp.kernel
def kernel(x: wp.array(dtype=wp.float64), n: int):
"""
FIRST_LINE = PRELUDE.count("\n") + 1


def define(body: str) -> Any:
    text = PRELUDE + "".join(f"    {line}\n" for line in body.split("\n"))
    name = f"<case {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "case"}
    exec(compile(text, name, "exec"), namespace)
    return namespace["kernel"]


def message(body: str, kind: type[CompileError]) -> str:
    with pytest.raises(kind) as caught:
        build_kernel(define(body), [ArrayType(wp.float64, 1), wp.int32])
    return str(caught.value)


UNSUPPORTED = [
    ("y = lambda a: a", "lambda"),
    ("y = [i for i in range(3)]", "comprehensions"),
    ("y = {1: 2}", "dictionaries"),
    ("y = f'{n}'", "f-strings"),
    ("(y := n)", "assignment expressions"),
    ("with x:\n    pass", "with statements"),
    ("try:\n    pass\nexcept ValueError:\n    pass", "try statements"),
    ("class C:\n    pass", "classes"),
    ("def g():\n    pass", "nested functions"),
    ("global x0", "global"),
    ("import os", "import statements"),
    ("del x", "del statements"),
    ("raise ValueError", "raise statements"),
    ("yield n", "yield"),
    ("print(*x)", "star-arguments"),
    ("for i in range(3):\n    pass\nelse:\n    n = 1", "'else' of a loop"),
    ("return x[0]", "cannot return a value"),
    ("wp.adjoint[x][0] += 1.0", "custom gradient function"),
    ("x[0] = endless(x[0])", "calls itself"),
    ("y = range(3)", "range()"),
]

UNKNOWN = [
    ("x[0] = undefined_name", "name 'undefined_name' is not defined"),
    ("value = f(1.0)\nx[0] = valu", "did you mean 'value'?"),
    ("x[0] = wp.sine(x[0])", "did you mean 'sin'?"),
    ("x[0] = math.sin(x[0])", "use wp.sin"),
    ("x[0] = plain(x[0])", "decorate it with @wp.func"),
    ("s = S()\ns.c = f(1.0)", "its fields are a, b"),
    ("if n > 1:\n    a = 1.0\nx[0] = f(a)", "only one branch of an 'if' binds it"),
    ("if False:\n    a = 1.0\nx[0] = a", "'a' may be unbound"),
    ("for i in range(n):\n    if i == 2:\n        a = x[i]\nx[0] = a", "'a' may be unbound"),
    ("x[0] = f(1.0) * q\nq = f(2.0)", "'q' may be unbound"),
]

WRONG_TYPES = [
    ("x[0] = x[0] * n", "'*' cannot combine float64 and int32"),
    ("x[0] = 2.0 * 3", "float32 literal 2.0 and int32 literal 3"),
    ("x[0] = 1", "write 1.0"),
    ("x[0] = wp.float32(1.0)", "must be float64, got float32"),
    ("a = 1\na = 2.0", "'a' is int32 literal 1 and cannot become float32 literal 2.0"),
    ("a = x[0]\na = n", "'a' is float64 and cannot become int32"),
    ("a = x[0]\nfor i in range(n):\n    a = i", "'a' is float64 and cannot become int32"),
    ("x[0] = f(1.0) if n > 0 else wp.float32(1.0)", "float64 in one branch and float32 in the other"),
    ("a = 0\nfor i in range(n):\n    a += x[i]", "int32 and float64"),
    ("x[0] = half(n)", "argument 'a' must be float64, got int32"),
    ("x[0] = half(x[0], x[0])", "takes 1 argument, got 2"),
    ("x[0] = half()", "argument 'a' is missing"),
    ("x[0] = partial(x[0])", "a return is missing"),
    ("x[0] = wp.dot(x[0], x[1])", "no overload of 'dot'"),
    ("x[0] = read(x, 0)", "element by element"),
    ("x[0, 1] = f(0.0)", "2 indices into an array of 1 dimension"),
    ("x[0.5] = f(0.0)", "index must be an integer"),
    ("v = wp.vec3d()\nv[3] = f(1.0)", "component 3 is out of range"),
    ("v = wp.vec3d(1.0, 2.0)", "needs 3 numbers, got 2"),
    ("m = wp.mat22d(wp.vec2d(), wp.vec2d())", "wp.matrix_from_rows"),
    ("p, q = wp.vec3d()", "3 values cannot be unpacked to 2"),
    ("for i in range(x[0]):\n    pass", "bounds of a range must be integers"),
    ("for i in range(0, 3, 0):\n    pass", "cannot be zero"),
    ("for y in x:\n    pass", "range(x.shape[0])"),
    ("wp.atomic_add(x, 0, 0, 1.0)", "1 dimension takes 2 arguments after it"),
    ('wp.printf("%d", x[0])', "does not fit float64"),
    ("t = (x[0], x[1])\nfor i in range(n):\n    t = (t[1], t[0])\nx[0] = t[0]", "cannot change from one iteration"),
]


@pytest.mark.parametrize(("body", "words"), UNSUPPORTED)
def test_unsupported_syntax(body: str, words: str) -> None:
    assert words in message(body, UnsupportedSyntaxError)


@pytest.mark.parametrize(("body", "words"), UNKNOWN)
def test_unknown_names(body: str, words: str) -> None:
    assert words in message(body, UnknownNameError)


@pytest.mark.parametrize(("body", "words"), WRONG_TYPES)
def test_wrong_types(body: str, words: str) -> None:
    assert words in message(body, KernelTypeError)


def test_a_message_shows_file_line_excerpt_and_caret() -> None:
    lines = message("a = n\nx[0] = x[0] * n", KernelTypeError).splitlines()
    assert lines[0] == "operator '*' cannot combine float64 and int32"
    assert lines[1].startswith('  File "<case ')
    assert lines[1].endswith(f"line {FIRST_LINE + 1}, in kernel kernel")
    assert lines[2] == "    x[0] = x[0] * n"
    assert lines[3] == "           ^^^^^^^^"
    assert lines[4].startswith("  hint: ")


def test_an_error_in_a_function_names_the_call_too() -> None:
    with pytest.raises(KernelTypeError) as caught:
        build_kernel(define("x[0] = faulty(x[0])"), [ArrayType(wp.float64, 1), wp.int32])
    text = str(caught.value)
    assert "return a + 1" in text
    assert text.index("called from") < text.index("x[0] = faulty(x[0])")
    assert isinstance(caught.value.__cause__, KernelTypeError)


def test_definitions_that_cannot_be_kernels() -> None:
    with pytest.raises(KernelTypeError, match="parameter 'x' of kernel 'bare' has no annotation"):

        @wp.kernel
        def bare(x): ...

    with pytest.raises(UnsupportedSyntaxError, match="star-parameters"):

        @wp.kernel
        def starred(*x: int): ...

    with pytest.raises(UnknownNameError, match="'nowhere' cannot be evaluated"):

        @wp.kernel
        def unresolved(x: nowhere): ...  # noqa: F821

    @wp.kernel
    def valued(x: wp.array(dtype=float)) -> float:
        return x[0]

    with pytest.raises(CompileError, match="return"):
        build_kernel(valued, [t for _, t in valued.parameters])


def test_source_that_cannot_be_read_is_explained() -> None:
    namespace: dict[str, Any] = {"wp": wp, "__name__": "nowhere"}
    exec("@wp.kernel\ndef kernel(x: wp.array(dtype=float)):\n    x[0] = 1.0\n", namespace)
    with pytest.raises(CompileError, match="linecache"):
        build_kernel(namespace["kernel"], [ArrayType(wp.float32, 1)])
