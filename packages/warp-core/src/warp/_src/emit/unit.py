"""What the functions of one translation unit share: structs, callees, snippets and checkpoint sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from warp._src.emit.names import cpp_type, field_name, is_array, is_struct, is_tensor, struct_name
from warp._src.emit.options import EmitOptions
from warp._src.ir.core import Function, Type
from warp._src.ir.ops import Invoke, Loop, ReverseLoop
from warp._src.types.scalars import bfloat16, float16
from warp._src.types.signature import size_of


class Unit:
    """Collects definitions in the order in which C++ needs them."""

    def __init__(self, function: Function, options: EmitOptions) -> None:
        self.options = options
        self.structs: dict[str, str] = {}
        self.definitions: list[str] = []
        self.functions: dict[Function, str] = {}
        self.natives: dict[Any, str] = {}
        self.kinds: set[str] = set()
        self._types: set[Any] = set()
        self._sites: dict[tuple[Function, Any], int] = {}
        for owner in functions_below(function):
            for key in _site_keys(owner):
                self._sites.setdefault((owner, key), len(self._sites))

    @property
    def site_count(self) -> int:
        """Number of loops that need a part of the arena."""
        return len(self._sites)

    def site(self, function: Function, op: Loop | ReverseLoop) -> int:
        """Number of the arena's part for a loop of `function`."""
        return self._sites[function, _site_key(op)]

    def type(self, type: Type) -> str:
        """Spell a type and define it first if it is a struct."""
        if type not in self._types:
            self._types.add(type)
            self._note(type)
        return cpp_type(type)

    def _note(self, type: Type) -> None:
        if is_array(type):
            self.type(type.dtype)
        elif is_struct(type):
            self._define_struct(type)
        elif is_tensor(type):
            self.kinds.add("tensor")
            if type.category in ("quaternion", "transform"):
                self.kinds.add("rotation")
            self.type(type.scalar)
        elif type is bfloat16:
            self.kinds.add("bfloat16")
        elif type is float16:
            self.kinds.add("half")

    def _define_struct(self, type: Any) -> None:
        fields = [f"    {self.type(field)} {field_name(name)};" for name, field in type.fields.items()]
        name = struct_name(type)
        if name in self.structs:
            return
        self.structs[name] = "\n".join(
            [
                f"struct {name} {{",
                *fields,
                "};",
                *([f'static_assert(sizeof({name}) == {size_of(type)}, "{name}");'] if type.fields else []),
                *_struct_functions(name, type),
            ]
        )


def _struct_functions(name: str, type: Any) -> Iterator[str]:
    """Addition and the test for finite values, field by field, as scalars and tensors have them."""
    numeric = {field_name(field): kind for field, kind in type.fields.items() if not is_array(kind)}
    yield f"WP_FN {name} fetch_add({name}& target, const {name}& value) {{"
    yield f"    {name} old = target;"
    yield from (f"    old.{field} = fetch_add(target.{field}, value.{field});" for field in numeric)
    yield "    return old;\n}"
    test = " && ".join(f"is_finite_value(x.{field})" for field in numeric) or "true"
    yield f"WP_FN bool is_finite_value(const {name}& x) {{ return {test}; }}"


def functions_below(function: Function) -> Iterator[Function]:
    """Yield every function that `function` invokes, callees first, and `function` itself last."""
    yield from _below(function, set())


def _below(function: Function, seen: set[int]) -> Iterator[Function]:
    if id(function) in seen:
        return
    seen.add(id(function))
    for op in function.walk():
        if isinstance(op, Invoke):
            yield from _below(op.function, seen)
    yield function


def _site_keys(function: Function) -> Iterable[Any]:
    for op in function.walk():
        keeps_states = op.states > 0 if isinstance(op, ReverseLoop) else isinstance(op, Loop) and bool(op.saved)
        if keeps_states and isinstance(op, (Loop, ReverseLoop)):
            yield _site_key(op)


def _site_key(op: Loop | ReverseLoop) -> Any:
    """Loops of one site share storage; a reverse loop that recomputes its states has its own."""
    is_shared = isinstance(op, Loop) or op.is_saved
    return op.site if is_shared and op.site is not None else ("own", op)
