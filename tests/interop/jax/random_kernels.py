"""Kernels of random signatures, each with a reference in jax.numpy that is written from the same description."""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import math
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

SHAPES: dict[str, tuple[int, ...]] = {"scalar": (), "vec2": (2,), "vec3": (3,), "mat22": (2, 2)}
FUNCTIONS = {"sin": "sin({0})", "square": "{0} * {0}", "tanh": "tanh({0})"}
"""Of one number, spelled alike in both worlds, after the module's name where there is a parenthesis."""


@dataclass(frozen=True)
class Signature:
    """Types of the arrays, by kind of element; the last inputs may be changed in place, which makes them outputs."""

    dtype: str
    ndim: int
    inputs: tuple[tuple[str, str], ...]
    """Kind and function."""
    scalar: float | None
    outputs: tuple[str, ...]
    changes_last: bool
    is_product: bool


signatures: st.SearchStrategy[Signature] = st.builds(
    Signature,
    dtype=st.sampled_from(["float32", "float64"]),
    ndim=st.integers(1, 2),
    inputs=st.lists(
        st.tuples(st.sampled_from(sorted(SHAPES)), st.sampled_from(sorted(FUNCTIONS))), min_size=1, max_size=3
    ).map(tuple),
    scalar=st.sampled_from([None, 0.5, -1.5]),
    outputs=st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=2).map(tuple),
    changes_last=st.booleans(),
    is_product=st.booleans(),
)

_directory = Path(tempfile.mkdtemp(prefix="warp-random-kernels-"))
atexit.register(shutil.rmtree, _directory, ignore_errors=True)
_made: dict[Signature, Any] = {}


def kernel_of(signature: Signature) -> Any:
    """Return the kernel; its source is in a file, as those of users are."""
    if signature not in _made:
        text = kernel_text(signature)
        name = "random_" + hashlib.sha256(text.encode()).hexdigest()[:12]
        path = _directory / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        _made[signature] = module.drawn
    return _made[signature]


def kernel_text(signature: Signature) -> str:
    """Return a module that defines the kernel `drawn`."""
    scalar = f"wp.{signature.dtype}"
    elements = {
        "scalar": scalar,
        "vec2": f"wp.types.vector(2, {scalar})",
        "vec3": f"wp.types.vector(3, {scalar})",
        "mat22": f"wp.types.matrix((2, 2), {scalar})",
    }
    array = f"wp.array(dtype={{}}, ndim={signature.ndim})"
    parameters = [f"x{n}: {array.format(kind.upper())}" for n, (kind, _) in enumerate(signature.inputs)]
    if signature.scalar is not None:
        parameters.insert(0, f"factor: {scalar}")
    parameters += [f"y{n}: {array.format(kind.upper())}" for n, kind in enumerate(signature.outputs)]
    index = ", ".join("ij"[: signature.ndim])
    one = f"{scalar}(1.0)"
    lines = [f"{kind.upper()} = {element}" for kind, element in elements.items()]
    lines += ["", "@wp.kernel", f"def drawn({', '.join(parameters)}):", f"    {index} = wp.tid()", f"    total = {one}"]
    for n, (kind, function) in enumerate(signature.inputs):
        number = {"scalar": "x{0}[{1}]", "mat22": "wp.trace(x{0}[{1}])"}.get(kind, "wp.dot(x{0}[{1}], x{0}[{1}])")
        value = FUNCTIONS[function].format(number.format(n, index))
        value = f"wp.{value}" if "(" in FUNCTIONS[function] else value
        lines.append(f"    total = total {'*' if signature.is_product else '+'} ({value})")
    if signature.scalar is not None:
        lines.append("    total = total * factor")
    for n, kind in enumerate(signature.outputs):
        count = math.prod(SHAPES[kind])
        parts = ", ".join(f"total * {scalar}({part + 1}.0)" for part in range(count))
        lines.append(f"    y{n}[{index}] = {parts if kind == 'scalar' else f'{kind.upper()}({parts})'}")
    if signature.changes_last:
        last = len(signature.inputs) - 1
        lines.append(f"    x{last}[{index}] = x{last}[{index}] * total")
    return "import warp as wp\n\n" + "\n".join(lines) + "\n"


def reference_of(signature: Signature, numpy: Any) -> Callable[..., list[Any]]:
    """Return what the kernel computes, as a function of arrays in the words of `numpy`; a changed input first."""

    def run(*inputs: Any) -> list[Any]:
        total: Any = 1.0
        for (kind, function), x in zip(signature.inputs, inputs, strict=True):
            if kind == "scalar":
                number = x
            elif kind == "mat22":
                number = x[..., 0, 0] + x[..., 1, 1]
            else:
                number = (x * x).sum(-1)
            value = {"sin": numpy.sin, "tanh": numpy.tanh, "square": lambda v: v * v}[function](number)
            total = total * value if signature.is_product else total + value
        if signature.scalar is not None:
            total = total * signature.scalar
        results = []
        if signature.changes_last:
            results.append(inputs[-1] * total.reshape(total.shape + (1,) * (inputs[-1].ndim - total.ndim)))
        for kind in signature.outputs:
            shape = SHAPES[kind]
            weights = numpy.arange(1, math.prod(shape) + 1).astype(signature.dtype).reshape(shape)
            results.append(total.reshape(total.shape + (1,) * len(shape)) * weights)
        return results

    return run


def inputs_of(signature: Signature, seed: int, batch: tuple[int, ...] = ()) -> list[Any]:
    """Return random inputs."""
    generator = np.random.default_rng(seed)
    shape = (3, 2)[: signature.ndim]
    return [
        generator.uniform(-1.5, 1.5, batch + shape + SHAPES[kind]).astype(signature.dtype)
        for kind, _ in signature.inputs
    ]
