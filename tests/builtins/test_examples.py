"""The examples in the docstrings of builtins: there is one for each, it runs, and it gives what it says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.differential.running import compile_source

import warp as wp
import warp._src.builtins.host
from warp._src.builtins.declare import REGISTRY, Builtin
from warp._src.ir.interp import run_kernel
from warp._src.lang.intrinsics import HANDLERS, RAW_HANDLERS
from warp._src.lang.source import build_kernel
from warp._src.lang.stubs import INTRINSICS
from warp._src.passes.pipeline import forward

PUBLIC = [record for records in REGISTRY.values() for record in records if not record.internal]
EXAMPLE = re.compile(r"Example: `([^`]+)`(?:\s+is\s+(\[.*\]|[-\w.]+?)\.$)?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"True|False|-?(?:inf|nan|[\d.]+(?:e-?\d+)?)")
# What the examples of statements speak of.
NAMES = """
@wp.func
def f(x: float, y: float):
    return x * y


@wp.kernel
def example(
    total: wp.array(dtype=float),
    values: wp.array(dtype=float),
    counts: wp.array(dtype=int),
    size: wp.array(dtype=int),
    start: wp.array(dtype=int),
    body_qd: wp.array(dtype=wp.spatial_vector),
):
    rng = wp.rand_init(42)
    seed = 7
    i = wp.tid()
    count = 3
    x = 0.25
    y = 0.5
    z = 0.75
    t = 0.5
    time = 0.5
    roll = 0.1
    pitch = 0.2
    yaw = 0.3
    angle = 0.5
    mean = 1.0
    deviation = 0.5
    radius = 2.0
    delta = 0.5
    r = wp.vec3(0.0, 1.0, 0.0)
    p = wp.vec3(1.0, 2.0, 3.0)
    axis = wp.vec3(0.0, 0.0, 1.0)
    normal = wp.vec3(0.6, 0.0, 0.8)
    center = wp.vec3(0.0, 0.0, 1.0)
    v = wp.vec2(1.0, 2.0)
    xy = wp.vec2(0.1, 0.2)
    xyz = wp.vec3(0.1, 0.2, 0.3)
    xyzt = wp.vec4(0.1, 0.2, 0.3, 0.4)
    q = wp.quat(0.0, 0.0, 0.6, 0.8)
    m = wp.MATRIX
    F = m
    U = m
    V = m
    Q = m
    R = m
    A = m
    d = wp.VECTOR
    sigma = d
    xform = wp.transform(p, q)
    body = xform
    twist = wp.spatial_vector(1.0, 0.0, 0.0, 0.0, 2.0, 0.0)
    other = wp.spatial_vector(0.0, 1.0, 0.0, 0.0, 0.0, 3.0)
    wrench = other
    momentum = other
"""
SHAPES = {
    2: ("mat22(2.0, 1.0, 0.0, 3.0)", "vec2(3.0, 2.0)"),
    3: ("mat33(2.0, 1.0, 0.0, 0.0, 3.0, 0.5, 0.0, 0.0, 1.0)", "vec3(3.0, 2.0, 1.0)"),
    4: ("mat44(1.0, 0.0, 0.0, 5.0, 0.0, 1.0, 0.0, 6.0, 0.0, 0.0, 1.0, 7.0, 0.0, 0.0, 0.0, 1.0)", "vec4()"),
}


def size_of_matrices(record: Builtin) -> int:
    """Tell which matrices the example of a builtin speaks of."""
    found = re.search(r"matrix\(shape=\((\d), ", record.signature)
    return int(found[1]) if found else 3


def run_example(code: str, size: int) -> None:
    """Run statements in a kernel on the interpreter."""
    matrix, vector = SHAPES[size]
    source = "import warp as wp\n\n" + NAMES.replace("MATRIX", matrix).replace("VECTOR", vector)
    source += "".join(f"    {line}\n" for line in code.splitlines())
    kernel = compile_source(source)["example"]
    integers = [np.full(4, number, np.int32) for number in (0, 1, 0)]
    memory = [np.ones(9, np.float32), np.arange(1.0, 10.0, dtype=np.float32), *integers, np.ones((2, 6), np.float32)]
    run_kernel(forward(build_kernel(kernel, tuple(t for _, t in kernel.parameters))), 1, memory)


def numbers(value: Any) -> list[float]:
    """Flatten what a builtin gives."""
    parts = value if isinstance(value, tuple) else (value,)
    return [float(number) for part in parts for number in np.asarray(part, float).ravel()]


@pytest.mark.parametrize("record", PUBLIC, ids=[record.signature for record in PUBLIC])
def test_every_builtin_has_an_example_that_runs(record: Builtin) -> None:
    found = EXAMPLE.search(record.doc)
    assert found is not None, record.doc
    code, value = found.groups()
    assert f"wp.{record.name}(" in code
    if record.name == "breakpoint":
        return  # it would stop
    run_example(code, size_of_matrices(record))
    if value is not None and not value.startswith("`"):
        given = [float({"True": 1, "False": 0}.get(number, number)) for number in NUMBER.findall(value)]
        np.testing.assert_allclose(numbers(eval(code, {"wp": wp})), given, rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("name", sorted(INTRINSICS))
def test_every_function_of_the_front_end_has_an_example_that_runs(name: str) -> None:
    doc = INTRINSICS[name].__doc__ or ""
    found = EXAMPLE.search(doc)
    assert found is not None, doc
    assert f"wp.{name}" in found[1]
    if name != "adjoint":  # means something in a custom gradient only
        run_example(found[1], 3)


def test_every_function_that_the_front_end_handles_is_documented() -> None:
    host = {"len", "type", "isinstance", "print", "constant", "zeros", "empty", "ones", "full"}
    arrays = {name for name in HANDLERS if name.startswith("array")}
    assert set(HANDLERS) | set(RAW_HANDLERS) == (set(INTRINSICS) - {"adjoint"}) | host | arrays
