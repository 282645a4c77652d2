"""Runs a generated program: as plain Python, through the front end on the interpreter, and its gradients."""

from __future__ import annotations

import linecache
import re
from typing import Any

import numpy as np
from tests.differential.programs import ARRAYS, THREADS, Inputs, Program
from tests.differential.python_model import Array, Model, Vec3
from warp._src.lang.source import build_kernel

from warp._src.ir.core import Function
from warp._src.ir.dual_run import run_kernel_dual
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell, Records
from warp._src.passes.adjoint import Adjoint
from warp._src.passes.pipeline import backward
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import float64, int32
from warp._src.types.tensors import vector
from warp.errors import AutogradError

DTYPES = {"float64": float64, "int32": int32, "vec3d": vector(3, float64)}
PARAM_TYPES = [ArrayType(DTYPES[dtype], 1) for dtype, _ in ARRAYS.values()]
FLOAT_ARRAYS = [name for name, (dtype, _) in ARRAYS.items() if dtype != "int32"]

Memory = dict[str, np.ndarray]


def compile_source(source: str) -> dict[str, Any]:
    """Execute a program's module so that the front end can read its source; gives the namespace."""
    name = f"<program {hash(source):x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, name, "exec"), namespace)
    return namespace


def front_end(program: Program) -> Function:
    """Translate the kernel of a program."""
    return build_kernel(compile_source(program.source)["program"], PARAM_TYPES)


def run_as_python(program: Program) -> Memory:
    """Run the program as Python on floats; gives the memory afterwards."""
    memory, model = program.inputs(), Model()
    source = program.source.replace("import warp as wp", "")
    source = re.sub(r"(v\d = )(pts\[.*\])$", r"\1copied(\2)", source, flags=re.MULTILINE)
    namespace: dict[str, Any] = {"wp": model, "copied": lambda vector: Vec3(*vector.c)}
    exec(compile(source.replace("from __future__", "#"), "<model>", "exec"), namespace)
    for thread in range(THREADS):
        model.thread = thread
        namespace["program"](*(Array(memory[name]) for name in ARRAYS))
    return memory


def cells(memory: Memory, gradients: Memory | None = None) -> list[ArrayCell]:
    """Make the interpreter's arguments."""
    return [
        ArrayCell(memory[name], None if gradients is None else gradients.get(name), DTYPES[dtype])
        for name, (dtype, _) in ARRAYS.items()
    ]


def run_interpreted(function: Function, program: Inputs, records: Records | None = None) -> Memory:
    """Run the forward kernel on the interpreter; gives the memory afterwards."""
    memory = program.inputs()
    run_kernel(function, THREADS, cells(memory), records=records)
    return memory


def seeds(program: Inputs) -> Memory:
    """Make random gradients of the final memory."""
    rng = np.random.default_rng(program.seed + 1)
    return {name: rng.uniform(-1.0, 1.0, program.inputs()[name].shape) for name in FLOAT_ARRAYS}


def adjoint(function: Function) -> Adjoint:
    """Build the backward kernel; AutogradError if the kernel has none."""
    result = backward(function, may_alias=False, dimensions=frozenset({0}))
    if result.problems:
        raise AutogradError("; ".join(problem.text for problem in result.problems))
    return result


def taped(function: Function, reverse: Adjoint, program: Inputs) -> tuple[Memory, Records]:
    """Run the forward kernel as a tape does, keeping what the adjoint recalls; gives the memory and the record."""
    records = Records()
    return run_interpreted(reverse.recorded or function, program, records), records


def gradients_by_adjoint(
    reverse: Adjoint, program: Inputs, after: Memory, slots: int | None, records: Records
) -> Memory:
    """Run the backward kernel over the memory that the forward run left; gives the gradients of the inputs."""
    gradients = seeds(program)
    run_kernel(
        reverse.function, THREADS, cells(after, gradients), order="descending", slots=slots, records=records
    )
    return gradients


def gradients_by_duals(function: Function, program: Inputs) -> Memory:
    """Contract the derivatives of the final by the initial memory with the seeds."""
    memory = program.inputs()
    count = sum(memory[name].size for name in FLOAT_ARRAYS)
    identity, directions, start = np.eye(count), [], 0
    for name in ARRAYS:
        if name not in FLOAT_ARRAYS:
            directions.append(None)
            continue
        size = memory[name].size
        directions.append(identity[:, start : start + size].reshape(count, *memory[name].shape))
        start += size
    derivatives = dict(zip(ARRAYS, run_kernel_dual(function, THREADS, cells(memory), directions), strict=True))
    weights = seeds(program)
    total = sum(np.tensordot(derivatives[name], weights[name], weights[name].ndim) for name in FLOAT_ARRAYS)
    gradients, start = {}, 0
    for name in FLOAT_ARRAYS:
        gradients[name] = total[start : start + memory[name].size].reshape(memory[name].shape)
        start += memory[name].size
    return gradients


__all__ = [
    "adjoint",
    "front_end",
    "gradients_by_adjoint",
    "gradients_by_duals",
    "run_as_python",
    "run_interpreted",
    "taped",
]
