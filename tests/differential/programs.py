"""Random kernels as Python source: every statement form, well-conditioned arithmetic, bounded loops.

A prologue loads inputs into every local and an epilogue stores nonlinear mixtures of all of them, so that no
derivative is trivially zero (GRADIENTS.md section 9). Indices are taken modulo the size, integers stay small and
not negative.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.differential.inputs import ARRAYS, Inputs

FLOATS = ("f0", "f1", "f2", "f3")
VECTORS = ("v0", "v1")
INTEGERS = ("k0", "k1")
MAX_DEPTH = 3

HEADER = """
import warp as wp


@wp.struct
class Body:
    a: wp.float64
    v: wp.vec3d
    k: wp.int32


@wp.func
def pair(a: wp.float64, b: wp.float64):
    return wp.sin(a) * b, 0.5 * a - wp.tanh(b)


@wp.func
def iterate(a: wp.float64, count: wp.int32):
    for step in range(count):
        if a > 1.2:
            return a
        a = 0.8 * a + 0.3 * wp.sin(a) + 0.05 * wp.float64(step)
    return a * a


@wp.func
def moved(body: Body, a: wp.float64):
    body.a = body.a * a
    body.v[1] = wp.sin(body.a)
    return body


@wp.kernel
def program(
    x: wp.array(dtype=wp.float64),
    pts: wp.array(dtype=wp.vec3d),
    n: wp.array(dtype=wp.int32),
    out: wp.array(dtype=wp.float64),
    acc: wp.array(dtype=wp.float64),
    vout: wp.array(dtype=wp.vec3d),
    grid: wp.array2d(dtype=wp.float64),
    bodies: wp.array(dtype=Body),
    counter: wp.array(dtype=wp.int32),
    also: wp.array(dtype=wp.float64),
):
    j = 1
    i = wp.tid()
    k0 = n[i % 4]
    k1 = (i + 1) % 3
    f0 = x[i % 5]
    f1 = wp.sin(x[(i + 1) % 5]) + 0.5
    f2 = x[(i + 2) % 5] * x[(i + 3) % 5]
    f3 = 0.7 - x[(i + 4) % 5]
    v0 = pts[i % 3]
    v1 = wp.vec3d(f0, f2, wp.tanh(f3))
    s = Body()
    s.a = wp.sin(f1 * f3)
    s.v = v0 * f0
""".lstrip()

EPILOGUE = """
    out[i % 5] = out[i % 5] + wp.sin(f0) * f1 + wp.tanh(f2) * s.v[2]
    acc[(i + 1) % 4] += f2 * wp.sin(f3) + s.a * s.a + 0.3 * f0
    acc[i % 4] += wp.dot(v0, v1) + wp.sin(s.v[0]) * s.v[1] + 0.1 * wp.float64(k0 + k1) * f1
    vout[i % 3] = v0 * wp.sin(f1) + v1 * f3
""".lstrip("\n")


@dataclass(frozen=True, kw_only=True)
class Program(Inputs):
    """Source of one kernel named `program`, and its inputs."""

    source: str


@dataclass
class Writer:
    """Draws statements and expressions; `is_hazardous` programs also read what they write."""

    rng: random.Random
    is_hazardous: bool
    lines: list[str] = field(default_factory=list)
    loops: int = 0
    counters: list[str] = field(default_factory=list)

    # -- expressions -----------------------------------------------------------------------------------

    def pick(self, options: tuple[str, ...]) -> str:
        return options[self.rng.randrange(len(options))]

    def draw(self, *forms: Callable[[], str]) -> str:
        """Draw one form; only its own parts are drawn then. Simple forms come first, for shrinking."""
        return forms[self.rng.randrange(len(forms))]()

    def integer(self) -> str:
        return self.pick((*INTEGERS, "i", *self.counters))

    def index(self, array: str) -> str:
        extent = ARRAYS[array][1][0]
        form = self.rng.randrange(3)
        if form == 0:
            return f"i % {extent}"
        if form == 1:
            return f"({self.integer()} + {self.rng.randrange(4)}) % {extent}"
        return f"(2 * {self.integer()} + {self.integer()}) % {extent}"

    def component(self) -> str:
        return str(self.rng.randrange(3)) if self.rng.random() < 0.7 else f"{self.integer()} % 3"

    def leaf(self) -> str:
        form = self.rng.randrange(10)
        if form < 4:
            return self.pick(FLOATS)
        if form == 4:
            return "s.a"
        if form == 5:
            return f"{self.pick((*VECTORS, 's.v'))}[{self.component()}]"
        if form == 6:
            return self.load()
        if form == 7:
            return f"0.1 * wp.float64({self.integer()})"
        return f"wp.float64({self.rng.uniform(-1.0, 1.0):.2f})"  # a literal alone would make float32 of sin(...)

    def load(self) -> str:
        array = self.pick(("x", "pts", "out", "acc", "vout") if self.is_hazardous else ("x", "pts"))
        component = f"[{self.component()}]" if ARRAYS[array][0] == "vec3d" else ""
        return f"{array}[{self.index(array)}]{component}"

    def scalar(self, depth: int = 2) -> str:
        if depth == 0:
            return self.leaf()
        return self.draw(
            self.leaf,
            lambda: f"(-{self.pick(FLOATS)})",
            lambda: f"({self.scalar(depth - 1)} + {self.scalar(depth - 1)})",
            lambda: f"({self.scalar(depth - 1)} - {self.scalar(depth - 1)})",
            lambda: f"({self.scalar(depth - 1)} * {self.scalar(depth - 1)})",
            lambda: f"wp.sin({self.scalar(depth - 1)})",
            lambda: f"wp.tanh({self.scalar(depth - 1)})",
            lambda: f"({self.scalar(depth - 1)} / (1.5 + {self.squared()}))",
            lambda: f"wp.max({self.scalar(depth - 1)}, {self.pick(FLOATS)})",
            lambda: f"wp.where({self.condition()}, {self.scalar(depth - 1)}, {self.pick(FLOATS)})",
            lambda: f"({self.pick(FLOATS)} if {self.condition()} else wp.sin({self.pick(FLOATS)}))",
            lambda: f"wp.dot({self.vector()}, {self.pick(VECTORS)})",
        )

    def squared(self) -> str:
        name = self.pick((*FLOATS, "s.a"))
        return f"{name} * {name}"

    def bounded(self) -> str:
        """An expression that does not grow when a loop repeats it."""
        return self.draw(
            lambda: f"wp.sin({self.scalar()})",
            lambda: f"wp.tanh({self.scalar()})",
            lambda: f"0.5 * ({self.scalar(1)})",
        )

    def vector(self) -> str:
        name, other = self.pick((*VECTORS, "s.v")), self.pick(VECTORS)
        return self.draw(
            lambda: name,
            lambda: f"({name} + {other})",
            lambda: f"(0.5 * {name} - {other})",
            lambda: f"({name} * wp.sin({self.pick(FLOATS)}))",
            lambda: f"wp.vec3d({self.leaf_float()}, wp.sin({self.pick(FLOATS)}), {self.pick(FLOATS)})",
        )

    def leaf_float(self) -> str:
        return self.pick((*FLOATS, "s.a", "v0[1]"))

    def condition(self) -> str:
        form = self.rng.randrange(4)
        comparison = self.pick(("<", ">", "<=", ">="))
        if form == 0:
            return f"{self.integer()} % 2 == {self.rng.randrange(2)}"
        if form == 1:
            return f"{self.integer()} {comparison} {self.rng.randrange(1, 5)}"
        simple = f"{self.pick(FLOATS)} {comparison} {self.rng.uniform(-0.5, 0.5):.2f}"
        if form == 2:
            return simple
        return f"({simple} {self.pick(('and', 'or'))} not {self.integer()} == 1)"

    # -- statements ------------------------------------------------------------------------------------

    def emit(self, text: str, depth: int) -> None:
        self.lines.append("    " * (depth + 1) + text)

    def block(self, depth: int, in_loop: bool, count: int) -> None:
        for _ in range(count):
            self.statement(depth, in_loop)

    def statement(self, depth: int, in_loop: bool) -> None:
        simple: list[Callable[[int], None]] = [
            self.assign,
            self.assign,
            self.augment,
            self.insert,
            self.swap,
            self.read,
            self.store,
            self.accumulate,
            self.count,
            self.call,
            self.fields,
        ]
        nested: list[Callable[[int, bool], None]] = [self.branch, self.for_loop, self.while_loop, self.leave]
        if depth < MAX_DEPTH and self.rng.random() > 0.65:
            nested[self.rng.randrange(len(nested))](depth, in_loop)
        else:
            simple[self.rng.randrange(len(simple))](depth)

    def assign(self, depth: int) -> None:
        if self.rng.random() < 0.75:
            self.emit(f"{self.pick(FLOATS)} = {self.bounded()}", depth)
        else:
            self.emit(f"{self.pick(VECTORS)} = 0.5 * {self.vector()}", depth)

    def augment(self, depth: int) -> None:
        text = self.draw(
            lambda: f"+= {self.bounded()}",
            lambda: f"-= {self.bounded()}",
            lambda: f"*= wp.sin({self.leaf_float()})",
            lambda: f"/= 1.5 + {self.squared()}",
        )
        self.emit(f"{self.pick(FLOATS)} {text}", depth)

    def insert(self, depth: int) -> None:
        operator = self.pick(("=", "=", "+=", "-="))
        self.emit(f"{self.pick(VECTORS)}[{self.component()}] {operator} {self.bounded()}", depth)

    def swap(self, depth: int) -> None:
        names = FLOATS if self.rng.random() < 0.7 else VECTORS
        first, second = self.rng.sample(names, 2)
        self.emit(f"{first}, {second} = {second}, {first}", depth)

    def read(self, depth: int) -> None:
        if self.rng.random() < 0.7:
            self.emit(f"{self.pick(FLOATS)} = {self.load()}", depth)
        else:
            self.emit(f"{self.pick(VECTORS)} = pts[{self.index('pts')}]", depth)

    def store(self, depth: int) -> None:
        form = self.rng.randrange(3)
        if form == 0:
            self.emit(f"vout[{self.index('vout')}] = {self.vector()}", depth)
        elif form == 1:
            self.emit(f"vout[{self.index('vout')}][{self.component()}] = {self.bounded()}", depth)
        else:
            self.emit(f"out[{self.index('out')}] = {self.bounded()}", depth)

    def accumulate(self, depth: int) -> None:
        text = self.draw(
            lambda: f"acc[{self.index('acc')}] += {self.bounded()}",
            lambda: f"acc[{self.index('acc')}] -= {self.bounded()}",
            lambda: f"wp.atomic_add(acc, {self.index('acc')}, {self.bounded()})",
            lambda: f"vout[{self.index('vout')}] += {self.vector()}",
        )
        self.emit(text, depth)

    def count(self, depth: int) -> None:
        name = self.pick(INTEGERS)
        forms = (
            f"{name} = ({self.integer()} + {self.rng.randrange(1, 4)}) % 5",
            f"{name} = n[{self.index('n')}]",
            f"{name} = ({name} * 3 + {self.integer()}) % 7",
        )
        self.emit(self.pick(forms), depth)

    def call(self, depth: int) -> None:
        first, second = self.rng.sample(FLOATS, 2)
        text = self.draw(
            lambda: f"{first}, {second} = pair({self.scalar(1)}, {self.pick(FLOATS)})",
            lambda: f"{first} = iterate({self.bounded()}, {self.integer()} % 6)",
            lambda: f"s = moved(s, {self.bounded()})",
        )
        self.emit(text, depth)

    def fields(self, depth: int) -> None:
        text = self.draw(
            lambda: f"s.a = {self.bounded()}",
            lambda: f"s.a += {self.bounded()}",
            lambda: f"s.v = {self.vector()} * 0.5",
            lambda: f"s.v[{self.component()}] = {self.bounded()}",
        )
        self.emit(text, depth)

    def branch(self, depth: int, in_loop: bool) -> None:
        self.emit(f"if {self.condition()}:", depth)
        self.block(depth + 1, in_loop, self.rng.randrange(1, 3))
        if self.rng.random() < 0.5:
            self.emit("else:", depth)
            self.block(depth + 1, in_loop, self.rng.randrange(1, 3))

    def for_loop(self, depth: int, in_loop: bool) -> None:
        if depth >= MAX_DEPTH - 1 and in_loop and self.rng.random() < 0.5:
            self.assign(depth)
            return
        counter = f"j{self.loops}"
        self.loops += 1
        forms = (
            str(self.rng.randrange(1, 5)),
            f"n[{self.index('n')}]",
            f"1, 2 + {self.integer()} % 4",
            f"0, {self.integer()} % 7, 2",
            f"{self.integer()} % 5, -1, -1",
        )
        self.emit(f"for {counter} in range({self.pick(forms)}):", depth)
        self.loop_body(counter, depth)

    def while_loop(self, depth: int, in_loop: bool) -> None:
        counter = f"c{self.loops}"
        self.loops += 1
        self.emit(f"{counter} = 0", depth)
        extra = self.pick(("", f" and {self.pick(FLOATS)} < 0.8", f" and {self.condition()}"))
        self.emit(f"while {counter} < {self.integer()} % 5 + 1{extra}:", depth)
        self.emit(f"{counter} += 1", depth + 1)
        self.loop_body(counter, depth)

    def loop_body(self, counter: str, depth: int) -> None:
        self.counters.append(counter)
        self.block(depth + 1, True, self.rng.randrange(1, 4))
        self.counters.remove(counter)

    def leave(self, depth: int, in_loop: bool) -> None:
        chance = self.rng.random()
        if not in_loop or chance < 0.1:
            if chance < 0.3:
                self.emit(f"if {self.pick(FLOATS)} > 0.9:", depth)
                self.store(depth + 1)
                self.emit("return", depth + 1)
            else:
                self.augment(depth)
            return
        self.emit(f"if {self.condition()}:", depth)
        if self.rng.random() < 0.5:
            self.augment(depth + 1)
        self.emit(self.pick(("break", "continue")), depth + 1)


def generate(rng: random.Random, *, is_hazardous: bool = False) -> Program:
    """Draw a program; a hazardous one also loads from the arrays that it writes."""
    writer = Writer(rng, is_hazardous)
    writer.block(0, False, rng.randrange(2, 8))
    return Program(seed=rng.randrange(1 << 30), source=HEADER + "\n".join(writer.lines) + "\n" + EPILOGUE)
