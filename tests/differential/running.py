"""Runs a generated program: as plain Python, through the front end on the interpreter, and its gradients."""

from __future__ import annotations

import itertools
import linecache
import re
from typing import Any

import numpy as np
from tests.differential.inputs import ARRAYS, BODY, Inputs, Memory, leaves
from tests.differential.programs import Program
from tests.differential.python_model import Array, Model, copied

from warp._src.ir.core import Function
from warp._src.ir.dual_run import run_kernel_dual
from warp._src.ir.interp import run_kernel
from warp._src.ir.memory import ArrayCell, Records
from warp._src.lang.source import build_kernel
from warp._src.passes.adjoint import Adjoint
from warp._src.passes.pipeline import backward
from warp.errors import AutogradError


def compile_source(source: str) -> dict[str, Any]:
    """Execute a program's module so that the front end can read its source; gives the namespace."""
    name = f"<program {hash(source):x}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, name, "exec"), namespace)
    return namespace


def front_end(program: Program) -> Function:
    """Translate the kernel of a program."""
    kernel = compile_source(program.source)["program"]
    return build_kernel(kernel, tuple(type for _, type in kernel.parameters))


def run_as_python(program: Program) -> Memory:
    """Run the program as Python on floats; gives the memory afterwards."""
    memory, model = program.memory(), Model()
    source = program.source.replace("import warp as wp", "")
    source = re.sub(r"((?:v\d|s) = )((?:pts|bodies)\[.*\])$", r"\1copied(\2)", source, flags=re.MULTILINE)
    source = re.sub(r"(bodies\[[^=]*\] = )s$", r"\1copied(s)", source, flags=re.MULTILINE)
    namespace: dict[str, Any] = {"wp": model, "copied": copied}
    exec(compile(source.replace("from __future__", "#"), "<model>", "exec"), namespace)
    for thread in itertools.product(*map(range, program.shape)):
        model.thread = thread
        namespace["program"](*(Array(memory[name], ARRAYS[name][0] == "vec3d") for name in ARRAYS))
    return memory


# -- the interpreter -------------------------------------------------------------------------------------


def _as_dicts(structs: np.ndarray) -> np.ndarray:
    """Turn a structured array into the interpreter's: an object array of dicts."""
    result = np.empty(structs.shape, dtype=object)
    for place in np.ndindex(structs.shape):
        result[place] = {name: structs[name][place].copy() for name in structs.dtype.names or ()}
    return result


def _as_structs(dicts: np.ndarray) -> np.ndarray:
    result = np.zeros(dicts.shape, BODY)
    for place in np.ndindex(dicts.shape):
        result[place] = tuple(dicts[place][name] for name in BODY.names or ())
    return result


def _cells(function: Function, memory: Memory, gradients: Memory | None = None) -> list[ArrayCell]:
    """Make the interpreter's arguments, over the same memory except that structs are copied."""
    cells = []
    for param, name in zip(function.params, ARRAYS, strict=True):
        pair = [memory[name], None if gradients is None else gradients.get(name)]
        primal, gradient = (a if a is None or a.dtype.names is None else _as_dicts(a) for a in pair)
        cells.append(ArrayCell(primal, gradient, param.type.dtype))
    return cells


def _structs_back(cells: list[ArrayCell], memory: Memory, gradients: Memory | None = None) -> None:
    for cell, name in zip(cells, ARRAYS, strict=True):
        if cell.primal.dtype == object:
            memory[name][...] = _as_structs(cell.primal)
            if gradients is not None:
                gradients[name][...] = _as_structs(cell.gradient)


def run_interpreted(function: Function, program: Inputs, records: Records | None = None) -> Memory:
    """Run the forward kernel on the interpreter; gives the memory afterwards."""
    memory = program.memory()
    cells = _cells(function, memory)
    run_kernel(function, program.shape, cells, records=records)
    _structs_back(cells, memory)
    return memory


def adjoint(function: Function, program: Inputs) -> Adjoint:
    """Build the backward kernel; AutogradError if the kernel has none."""
    several = frozenset(d for d, extent in enumerate(program.shape) if extent > 1)
    result = backward(function, may_alias=program.may_alias, dimensions=several)
    if result.problems:
        raise AutogradError("; ".join(problem.text for problem in result.problems))
    return result


def taped(function: Function, reverse: Adjoint, program: Inputs) -> tuple[Memory, Records]:
    """Run the forward kernel as a tape does, keeping what the adjoint recalls; gives the memory and the record."""
    records = Records()
    return run_interpreted(reverse.recorded or function, program, records), records


def gradients_by_adjoint(
    reverse: Adjoint, program: Inputs, after: Memory, slots: int | None, records: Records, factor: float = 1.0
) -> Memory:
    """Run the backward kernel over the memory that the forward run left; gives the gradients of the inputs.

    The seeds are multiplied by `factor`.
    """
    gradients = program.seeds()
    for _, leaf in leaves(gradients, program.overlap):
        leaf *= factor
    cells = _cells(reverse.function, after, gradients)
    run_kernel(reverse.function, program.shape, cells, order="descending", slots=slots, records=records)
    _structs_back(cells, after, gradients)
    return gradients


def gradients_by_duals(function: Function, program: Inputs) -> dict[str, np.ndarray]:
    """Contract the derivatives of the final by the initial memory with the seeds; keys as those of `leaves`."""
    memory = program.memory()
    initial = dict(leaves(memory, program.overlap))
    weights = dict(leaves(program.seeds(), program.overlap))
    count = sum(leaf.size for leaf in initial.values())
    identity, directions, start = np.eye(count), {}, 0
    for name, leaf in initial.items():
        directions[name] = identity[:, start : start + leaf.size].reshape(count, *leaf.shape)
        start += leaf.size
    found = run_kernel_dual(
        function, program.shape, _cells(function, memory), [_by_parameter(directions, name) for name in ARRAYS]
    )
    derivatives = {}
    for name, derivative in zip(ARRAYS, found, strict=True):
        fields = derivative if isinstance(derivative, dict) else {"": derivative}
        derivatives.update({f"{name}.{field}" if field else name: part for field, part in fields.items()})
    total = sum(np.tensordot(derivatives[name], weight, weight.ndim) for name, weight in weights.items())
    gradients, start = {}, 0
    for name, leaf in initial.items():
        gradients[name] = total[start : start + leaf.size].reshape(leaf.shape)
        start += leaf.size
    return gradients


def _by_parameter(directions: dict[str, np.ndarray], name: str) -> Any:
    fields = {key.partition(".")[2]: value for key, value in directions.items() if key.startswith(f"{name}.")}
    return fields or directions.get(name)


__all__ = [
    "adjoint",
    "compile_source",
    "front_end",
    "gradients_by_adjoint",
    "gradients_by_duals",
    "run_as_python",
    "run_interpreted",
    "taped",
]
