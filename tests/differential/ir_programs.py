"""Random kernels built straight as IR: shapes of regions and carried values that the front end would not write."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tests.differential.inputs import ARRAYS

import warp._src.builtins  # noqa: F401 - registers the builtins
from warp._src.builtins.declare import resolve
from warp._src.ir.builder import Builder
from warp._src.ir.core import Function, Location, Region, Value
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import bool_, float64, int32
from warp._src.types.structs import struct
from warp._src.types.tensors import vector

vec3d = vector(3, float64)
Pool = dict[object, list[Value]]


@struct
class Body:
    a: float64
    v: vec3d
    k: int32


DTYPES = {"float64": float64, "int32": int32, "vec3d": vec3d, "Body": Body}
PARAM_TYPES = [ArrayType(DTYPES[dtype], len(shape)) for dtype, shape in ARRAYS.values()]
ATOMICS = {
    float64: ("add", "sub", "min", "max", "exch", "cas"),
    vec3d: ("add", "sub", "min", "max"),
}
READ_ONLY = ("x", "pts", "n")
WRITTEN = ("out", "acc", "vout", "grid", "bodies", "counter", "also")


@dataclass
class IrWriter:
    """Appends random operations; `pool` holds the visible values by type."""

    rng: random.Random
    is_hazardous: bool
    builder: Builder = field(default_factory=Builder)
    params: dict[str, Value] = field(default_factory=dict)
    pool: Pool = field(default_factory=dict)
    line: int = 0

    def program(self) -> Function:
        values = tuple(Value(type, name) for type, name in zip(PARAM_TYPES, ARRAYS, strict=True))
        self.params = dict(zip(ARRAYS, values, strict=True))
        self.builder.region = Region(values)
        (i,) = self.builder.thread_index(1)
        self.pool = {int32: [i], float64: [], vec3d: [], bool_: []}
        for name in ("x", "x", "n", "pts", "x"):
            self.keep(self.builder.load(self.params[name], [self.index(ARRAYS[name][1][0])]))
        self.block(0, self.rng.randrange(4, 12))
        self.epilogue(i)
        self.builder.yield_()
        return Function("program", values, (), self.builder.region, is_kernel=True)

    def epilogue(self, i: Value) -> None:
        """Store a nonlinear mixture of every value that is visible at the end."""
        total = self.builder.const(float64, 0.0)
        for value in self.pool[float64]:
            total = self.call("add", self.call("mul", total, self.literal()), self.call("sin", value))
        for v in self.pool[vec3d]:
            total = self.call("add", total, self.call("dot", v, v))
        at = self.call("mod", i, self.builder.const(int32, 4))
        self.builder.atomic("add", self.params["acc"], total, [at])
        self.builder.store(self.params["vout"], self.one(vec3d), [self.call("mod", i, self.builder.const(int32, 3))])

    # -- values ----------------------------------------------------------------------------------------

    def one(self, type: object) -> Value:
        return self.rng.choice(self.pool[type])

    def literal(self) -> Value:
        return self.builder.const(float64, self.rng.uniform(-1.0, 1.0))

    def keep(self, value: Value) -> Value:
        self.pool[value.type].append(value)
        return value

    def call(self, name: str, *args: Value) -> Value:
        return self.builder.call(resolve(name, [arg.type for arg in args]), args)[0]

    def index(self, extent: int) -> Value:
        shifted = self.call("add", self.one(int32), self.builder.const(int32, self.rng.randrange(extent)))
        return self.call("mod", shifted, self.builder.const(int32, extent))

    def condition(self) -> Value:
        if self.rng.random() < 0.5:
            return self.call("gt", self.one(float64), self.one(float64))
        return self.call("lt", self.one(int32), self.builder.const(int32, self.rng.randrange(1, 6)))

    def bounded(self, value: Value) -> Value:
        return self.call(self.rng.choice(("sin", "tanh")), value)

    # -- operations ------------------------------------------------------------------------------------

    def block(self, depth: int, count: int) -> None:
        for _ in range(count):
            self.line += 1
            self.builder.loc = Location("random.py", self.line)
            if depth < 3 and self.rng.random() > 0.7:
                self.rng.choice((self.branch, self.loop))(depth)
            else:
                self.rng.choice((self.arithmetic, self.arithmetic, self.vectors, self.count, self.read, self.write))()

    def arithmetic(self) -> None:
        a, b = self.one(float64), self.one(float64)
        form = self.rng.randrange(6)
        if form < 3:
            self.keep(self.bounded(self.call(("add", "sub", "mul")[form], a, b)))
        elif form == 3:
            bottom = self.call("add", self.call("mul", b, b), self.builder.const(float64, 1.5))
            self.keep(self.call("div", a, bottom))
        elif form == 4:
            self.keep(self.call("max", a, b))
        else:
            self.keep(self.call("where", self.condition(), a, b))

    def vectors(self) -> None:
        v = self.one(vec3d)
        form = self.rng.randrange(5)
        if form == 0:
            self.keep(self.builder.insert(v, self.one(float64), (None,), [self.index(3)]))
        elif form == 1:
            self.keep(self.builder.extract(v, (self.rng.randrange(3),)))
        elif form == 2:
            self.keep(self.builder.construct(vec3d, [self.one(float64) for _ in range(3)]))
        elif form == 3:
            self.keep(self.call("mul", v, self.bounded(self.one(float64))))
        else:
            self.keep(self.bounded(self.call("dot", v, self.one(vec3d))))

    def count(self) -> None:
        total = self.call("add", self.one(int32), self.one(int32))
        self.keep(self.call("mod", total, self.builder.const(int32, 7)))

    def read(self) -> None:
        self.load(self.rng.choice((*READ_ONLY, *WRITTEN) if self.is_hazardous else READ_ONLY))

    def load(self, name: str) -> None:
        array, at = self.element(name)
        type, path, indices = self.component(name)
        value = self.builder.load(array, at, path, indices)
        # Integers that come from memory are made small again.
        self.keep(self.call("mod", value, self.builder.const(int32, 7)) if type is int32 and name != "n" else value)

    def element(self, name: str) -> tuple[Value, list[Value]]:
        """An array and indices; an element of the grid is sometimes reached through its row."""
        array, at = self.params[name], [self.index(extent) for extent in ARRAYS[name][1]]
        if name == "grid" and self.rng.random() < 0.4:
            return self.builder.view(array, at[:1]), at[1:]
        return array, at

    def component(self, name: str) -> tuple[object, tuple[int | str | None, ...], list[Value]]:
        """Type and path of what is accessed: the element, a field, or a component that may be dynamic."""
        dtype = DTYPES[ARRAYS[name][0]]
        if dtype not in (vec3d, Body):
            return dtype, (), []
        step: int | None = self.rng.choice((None, self.rng.randrange(3)))
        index = [self.index(3)] if step is None else []
        forms = [(vec3d, (), []), (float64, (step,), index)]
        if dtype is Body:
            forms = [(float64, ("a",), []), (vec3d, ("v",), []), (float64, ("v", step), index), (int32, ("k",), [])]
        return self.rng.choice(forms)

    def write(self) -> None:
        name = self.rng.choice(WRITTEN)
        type, path, indices = self.component(name)
        array, at = self.element(name)
        if type is int32 or self.rng.random() < 0.4:
            self.builder.store(array, self.one(type), at, path, indices)
            return
        kind = self.rng.choice(ATOMICS[type] if self.is_hazardous else ("add", "sub"))
        expected = self.builder.load(array, at, path, indices) if kind == "cas" else None
        old = self.builder.atomic(kind, array, self.one(type), at, path, indices, expected=expected)
        if self.is_hazardous and self.rng.random() < 0.5:
            self.keep(old)

    # -- regions ---------------------------------------------------------------------------------------

    def nested(self, args: tuple[Value, ...], depth: int, types: list[object]) -> Region:
        """Fill a region with random operations; it yields values of the given types."""
        outer = {type: list(values) for type, values in self.pool.items()}
        with self.builder.into(Region(args)) as region:
            for arg in args:
                self.keep(arg)
            self.block(depth + 1, self.rng.randrange(1, 4))
            self.builder.yield_([self.yielded(type) for type in types])
        self.pool = outer
        return region

    def yielded(self, type: object) -> Value:
        """Choose among the newest values, so that the region's work matters."""
        value = self.rng.choice(self.pool[type][-4:])
        return self.bounded(value) if type is float64 else value

    def types(self) -> list[object]:
        return [self.rng.choice((float64, float64, vec3d, int32)) for _ in range(self.rng.randrange(4))]

    def branch(self, depth: int) -> None:
        types, condition = self.types(), self.condition()
        then, orelse = self.nested((), depth, types), self.nested((), depth, types)
        for value in self.builder.if_(condition, then, orelse):
            self.keep(value)

    def loop(self, depth: int) -> None:
        types = self.types()
        inits = [self.one(type) for type in types]
        trip = self.call("mod", self.one(int32), self.builder.const(int32, self.rng.randrange(2, 8)))
        condition = self.test(types) if self.rng.random() < 0.4 else None
        body = self.nested((Value(int32, "k"), *(Value(type) for type in types)), depth, types)
        for value in self.builder.loop(trip, inits, condition, body):
            self.keep(value)

    def test(self, types: list[object]) -> Region:
        outer = {type: list(values) for type, values in self.pool.items()}
        with self.builder.into(Region(tuple(Value(type) for type in types))) as region:
            for arg in region.args:
                self.keep(arg)
            self.builder.yield_([self.condition()])
        self.pool = outer
        return region


def generate_ir(rng: random.Random, *, is_hazardous: bool = False) -> Function:
    """Draw a kernel; a hazardous one also loads from the arrays that it writes."""
    return IrWriter(rng, is_hazardous).program()
