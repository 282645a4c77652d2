"""Every example of docs/semantics.md holds on the interpreter and in compiled code, by two compilers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builtins.instances import rounded, scalar_type, shaped
from tests.builtins.native_calls import converted, load, pack, unpack

from warp._src.build import Compiler, available_compilers
from warp._src.builtins import call_on_host
from warp._src.builtins.declare import REGISTRY, resolve
from warp._src.emit.names import cpp_type
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Region, Value
from warp._src.ir.interp import run_function
from warp._src.types.scalars import SCALARS, is_scalar
from warp._src.types.tensors import SHORT_NAMES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "semantics.md").read_text(encoding="utf-8")
TYPES: dict[str, Any] = {scalar.name: scalar for scalar in SCALARS} | SHORT_NAMES
CALL = re.compile(r"`([\w, ]+): (\w+)\(([^`]*)\) = ([^`]+)`")
CAST = re.compile(r"`(\w+) -> (\w+): ([^`]+) = ([^`]+)`")
NUMBERS = {"nan": "NaN", "inf": "Infinity"}
LIBRARY_FUNCTIONS = frozenset(
    "sin cos tan asin acos atan atan2 sinh cosh tanh exp log log2 log10 cbrt pow erf erfc erfinv erfcinv".split()
)


@dataclass(frozen=True)
class Example:
    """A line of the page: operation ("cast" for casts), types of the operands and of the result, values."""

    text: str
    operation: str
    param_types: tuple[Any, ...]
    result_type: Any
    args: tuple[Any, ...]
    expected: Any


def _parse(text: str) -> Any:
    return json.loads(re.sub(r"\b(nan|inf)\b", lambda match: NUMBERS[match[1]], text))


def _typed(type: Any, number: Any) -> Any:
    with np.errstate(over="ignore"):
        values = rounded(scalar_type(type), number)
        return values[()] if is_scalar(type) else values


def _examples() -> list[Example]:
    found = []
    for match in CALL.finditer(PAGE):
        args = _parse(f"[{match[3]}]")
        names = [name.strip() for name in match[1].split(",")]
        types = [TYPES[name] for name in names] * (len(args) if len(names) == 1 else 1)
        result = resolve(match[2], types).result_types[0]
        found.append(_example(match[0], match[2], types, result, args, match[4]))
    for match in CAST.finditer(PAGE):
        found.append(_example(match[0], "cast", [TYPES[match[1]]], TYPES[match[2]], [_parse(match[3])], match[4]))
    return found


def _example(text: str, operation: str, types: list[Any], result: Any, args: list[Any], expected: str) -> Example:
    values = tuple(_typed(type, arg) for type, arg in zip(types, args, strict=True))
    return Example(text.strip("`"), operation, tuple(types), result, values, _typed(result, _parse(expected)))


EXAMPLES = _examples()


def _check(example: Example, got: Any) -> None:
    want = shaped(example.result_type, example.expected)
    got = shaped(example.result_type, got)
    if example.operation in LIBRARY_FUNCTIONS and want.dtype.kind == "f":
        np.testing.assert_array_max_ulp(got, want, maxulp=1)
    else:
        np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        is_number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(want)[is_number])


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.text for example in EXAMPLES])
def test_interpreter(example: Example) -> None:
    args = tuple(Value(type) for type in example.param_types)
    region = Region(args=args)
    builder = Builder(region)
    if example.operation == "cast":
        value = builder.cast(example.result_type, args[0])
    else:
        (value,) = builder.call(resolve(example.operation, example.param_types), args)
    builder.yield_([value])
    (got,) = run_function(Function("example", args, (value.type,), region), example.args)
    _check(example, got)


COMPILERS = available_compilers()


@cache
def _compiled(compiler: Compiler) -> Any:
    return load("\n".join(_function(index, example) for index, example in enumerate(EXAMPLES)), compiler)


def _function(index: int, example: Example) -> str:
    names = [f"x{position}" for position in range(len(example.args))]
    reads = "".join(
        f"    {cpp_type(type)} {name}; __builtin_memcpy(&{name}, in, {type.size}); in += {type.size};\n"
        for name, type in zip(names, example.param_types, strict=True)
    )
    if example.operation == "cast":
        value = f"wp::cast<{cpp_type(example.result_type)}>(x0)"
    else:
        overload = resolve(example.operation, example.param_types)
        computed = overload.computed
        parameters = zip(names, overload.param_types, computed.param_types, strict=True)
        words = dict(zip(overload.builtin.parameters, (converted(*given) for given in parameters), strict=True))
        for variable, bound in computed.bindings.items():
            words[variable.__name__] = str(bound) if isinstance(bound, int) else cpp_type(bound)
        value = re.sub(r"\{(\w+)\}", lambda match: words[match[1]], overload.builtin.cpp)
        value = converted(value, computed.result_types[0], example.result_type)
    return (
        f"WP_EXPORT void example_{index}(const char* in, char* out) {{\n{reads}"
        f"    {cpp_type(example.result_type)} result = {value};\n"
        f"    __builtin_memcpy(out, &result, {example.result_type.size});\n}}\n"
    )


@pytest.mark.parametrize("compiler", COMPILERS, ids=[compiler.name for compiler in COMPILERS])
def test_compiled_code(compiler: Compiler) -> None:
    library = _compiled(compiler)
    wrong = []
    for index, example in enumerate(EXAMPLES):
        data = b"".join(pack(type, arg) for type, arg in zip(example.param_types, example.args, strict=True))
        out = bytearray(example.result_type.size)
        library[f"example_{index}"](data, (np.ctypeslib.ctypes.c_char * len(out)).from_buffer(out))
        got = unpack(example.result_type, bytes(out))
        try:
            _check(example, got)
        except AssertionError:
            wrong.append(f"{example.text}, got {got}")
    assert not wrong, "\n".join(wrong)


def test_two_compilers_are_tried() -> None:
    assert len(COMPILERS) >= 2


def test_every_row_of_an_operation_has_examples() -> None:
    tables = PAGE.split("## Derivatives")[0]
    rows = [line for line in tables.splitlines() if line.startswith("|") and not line.startswith("|---")]
    bare = [row for row in rows if not CALL.search(row) and not CAST.search(row) and "examples |" not in row]
    assert not bare


def test_every_operator_and_scalar_function_has_an_example() -> None:
    shown = {example.operation for example in EXAMPLES}
    wanted = {
        name
        for name, overloads in REGISTRY.items()
        for record in overloads
        if record.group in ("Operators", "Scalar math")
    }
    assert wanted - shown == {"pos"}


def test_calls_from_python_give_python_values() -> None:
    assert call_on_host("add", 2, 3) == 5
    assert call_on_host("sin", 0.5) == float(np.sin(np.float32(0.5)))
    assert call_on_host("sin", TYPES["float64"](0.5)) == float(np.sin(0.5))
    assert call_on_host("isnan", 0.5) is False
    assert call_on_host("cross", TYPES["vec3"](1, 0, 0), TYPES["vec3"](0, 1, 0)) == TYPES["vec3"](0, 0, 1)
    assert call_on_host("mul", TYPES["vec2d"](1, 2), 2.0) == TYPES["vec2d"](2, 4)
    assert call_on_host("div", 5, 0) == 0
