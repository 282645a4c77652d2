"""Random kernels that overwrite what they read: elements, atomics and their results, overlapping arrays."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.differential.inputs import ARRAYS, OVERLAPS, SHAPES
from tests.differential.programs import (
    EPILOGUE,
    FLOATS,
    HEADER,
    INTEGERS,
    MAX_DEPTH,
    VECTORS,
    Program,
    Writer,
)

# Elements of float64 by how they are written; the gaps are indices.
PLACES = ("out[{}]", "acc[{}]", "also[{}]", "grid[{}, {}]", "bodies[{}].a", "bodies[{}].v[{}]", "vout[{}][{}]")
SCALAR_ARRAYS = ("out", "acc", "also", "grid")

MIXTURE = """
    grid[i % 3, (i + j) % 4] = grid[i % 3, (i + j) % 4] * wp.sin(f1) + f2
    bodies[(i + j) % 3] = s
    also[i % 3] += f0 * f3
    counter[i % 2] += k1
""".lstrip("\n")


class MemoryWriter(Writer):
    """Draws statements on memory as often as on locals."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, is_hazardous=True)

    def integer(self) -> str:
        return self.pick((*INTEGERS, "i", "j", "s.k", *self.counters))

    def at(self, extent: int) -> str:
        """An index below an extent; often the thread's own, which analysis can tell apart."""
        return self.draw(
            lambda: f"i % {extent}",
            lambda: f"({self.integer()} + {self.rng.randrange(4)}) % {extent}",
            lambda: f"(2 * {self.integer()} + {self.integer()}) % {extent}",
            lambda: f"n[{self.integer()} % 4] % {extent}",
            lambda: f"counter[{self.integer()} % 2] % {extent}",
            lambda: f"{self.rng.randrange(extent)}",
        )

    def place(self) -> str:
        """An element of float64."""
        form = self.pick(PLACES)
        extents = ARRAYS[form.split("[")[0]][1]
        components = [3] * (form.count("{}") - len(extents))
        return form.format(*(self.at(extent) for extent in (*extents, *components)))

    def load(self) -> str:
        return self.place() if self.rng.random() < 0.8 else super().load()

    def condition(self) -> str:
        if self.rng.random() < 0.7:
            return super().condition()
        return self.draw(
            lambda: f"{self.place()} > {self.rng.uniform(-0.5, 0.5):.2f}",
            lambda: f"counter[{self.integer()} % 2] % 2 == 0",
        )

    def statement(self, depth: int, in_loop: bool) -> None:
        if depth < MAX_DEPTH and self.rng.random() < 0.05:
            self.counted_loop(depth)
            return
        forms: tuple[Callable[[int], None], ...] = (
            self.change,
            self.change,
            self.exchange,
            self.atomic,
            self.atomic,
            self.atomic_result,
            self.integers,
            self.rows,
            self.structs,
            self.vectors,
        )
        if self.rng.random() < 0.5:
            forms[self.rng.randrange(len(forms))](depth)
        else:
            super().statement(depth, in_loop)

    # -- statements ------------------------------------------------------------------------------------

    def counted_loop(self, depth: int) -> None:
        """A loop whose trip count comes from memory that the kernel changes."""
        counter = f"j{self.loops}"
        self.loops += 1
        trips = self.draw(
            lambda: f"counter[{self.integer()} % 2] % 4",
            lambda: f"bodies[{self.at(3)}].k % 4",
            lambda: f"wp.atomic_add(counter, {self.integer()} % 2, 1) % 4",
        )
        self.emit(f"for {counter} in range({trips}):", depth)
        self.loop_body(counter, depth)

    def change(self, depth: int) -> None:
        place = self.place()
        text = self.draw(
            lambda: f"{place} *= wp.sin({self.leaf_float()}) + 0.5",
            lambda: f"{place} /= 1.5 + {self.squared()}",
            lambda: f"{place} += {self.bounded()}",
            lambda: f"{place} -= {self.bounded()}",
            lambda: f"{place} = {place} * {place}",
            lambda: f"{place} = wp.sin({place}) * {self.pick(FLOATS)}",
            lambda: f"{place} = {self.bounded()}",
        )
        self.emit(text, depth)

    def exchange(self, depth: int) -> None:
        first, second = self.place(), self.place()
        self.emit(f"{first}, {second} = {second}, {first}", depth)

    def target(self) -> tuple[str, str]:
        """Array of float64 and index arguments of an atomic, and the same as an element."""
        array = self.pick(SCALAR_ARRAYS)
        indices = ", ".join(self.at(extent) for extent in ARRAYS[array][1])
        return f"{array}, {indices}", f"{array}[{indices}]"

    def atomic_call(self) -> str:
        arguments, element = self.target()
        return self.draw(
            lambda: f"wp.atomic_add({arguments}, {self.bounded()})",
            lambda: f"wp.atomic_sub({arguments}, {self.bounded()})",
            lambda: f"wp.atomic_min({arguments}, {self.bounded()})",
            lambda: f"wp.atomic_max({arguments}, {self.bounded()})",
            lambda: f"wp.atomic_exch({arguments}, {self.bounded()})",
            lambda: f"wp.atomic_cas({arguments}, {element}, {self.bounded()})",
            lambda: f"wp.atomic_cas({arguments}, {self.pick(FLOATS)}, {self.bounded()})",
        )

    def atomic(self, depth: int) -> None:
        self.emit(self.atomic_call(), depth)

    def atomic_result(self, depth: int) -> None:
        self.emit(f"{self.pick(FLOATS)} = {self.atomic_call()}", depth)

    def integers(self, depth: int) -> None:
        name, at = self.pick((*INTEGERS, "s.k")), f"{self.integer()} % 2"
        text = self.draw(
            lambda: f"{name} = wp.atomic_add(counter, {at}, 1) % 5",
            lambda: f"{name} = wp.atomic_max(counter, {at}, {self.integer()}) % 5",
            lambda: f"{name} = wp.atomic_exch(counter, {at}, {self.integer()}) % 5",
            lambda: f"{name} = wp.atomic_cas(counter, {at}, {self.integer()}, {self.integer()}) % 5",
            lambda: f"counter[{at}] += 1",
            lambda: f"counter[{at}] = (counter[{at}] * 2 + {self.integer()}) % 7",
            lambda: f"bodies[{self.at(3)}].k = {self.integer()} % 5",
            lambda: f"{name} = bodies[{self.at(3)}].k % 5",
        )
        self.emit(text, depth)

    def rows(self, depth: int) -> None:
        """Elements of a row by way of a view."""
        row = f"row{self.loops}"
        self.loops += 1
        self.emit(f"{row} = grid[{self.at(3)}]", depth)
        at = self.at(4)
        text = self.draw(
            lambda: f"{row}[{at}] = {self.bounded()}",
            lambda: f"{row}[{at}] *= {self.bounded()}",
            lambda: f"{self.pick(FLOATS)} = {row}[{at}] * {row}[{self.at(4)}]",
            lambda: f"{self.pick(FLOATS)} = wp.atomic_add({row}, {at}, {self.bounded()})",
        )
        self.emit(text, depth)

    def structs(self, depth: int) -> None:
        at = self.at(3)
        text = self.draw(
            lambda: f"s = bodies[{at}]",
            lambda: f"bodies[{at}] = s",
            lambda: f"bodies[{at}].v = {self.vector()} * 0.5",
            lambda: f"bodies[{at}].v[{self.component()}] *= {self.bounded()}",
        )
        self.emit(text, depth)

    def vectors(self, depth: int) -> None:
        at = self.at(3)
        text = self.draw(
            lambda: f"vout[{at}] = vout[{at}] * {self.bounded()}",
            lambda: f"vout[{at}] *= wp.sin({self.pick(FLOATS)})",
            lambda: f"vout[{at}] -= {self.vector()} * 0.5",
            lambda: f"vout[{at}][{self.component()}] += {self.bounded()}",
            lambda: f"vout[{at}], vout[{self.at(3)}] = {self.vector()}, vout[{at}]",
            lambda: f"wp.atomic_{self.pick(('min', 'max'))}(vout, {at}, {self.pick(VECTORS)})",
            lambda: f"{self.pick(VECTORS)} = wp.atomic_{self.pick(('add', 'sub'))}(vout, {at}, {self.vector()})",
        )
        self.emit(text, depth)


def generate_memory_program(rng: random.Random) -> Program:
    """Draw a program that overwrites what it reads, and how it is launched."""
    writer = MemoryWriter(rng)
    writer.block(0, False, rng.randrange(2, 8))
    return launched(rng, HEADER, "\n".join(writer.lines) + "\n" + EPILOGUE + MIXTURE)


def launched(rng: random.Random, header: str, body: str) -> Program:
    """Make a program of a header and what follows it, and draw how it is launched."""
    shape = SHAPES[rng.randrange(len(SHAPES))]
    overlap = list(OVERLAPS)[max(0, rng.randrange(-len(OVERLAPS), len(OVERLAPS)))]
    if len(shape) == 2:
        header = header.replace("    j = 1\n    i = wp.tid()", "    i, j = wp.tid()")
    return Program(seed=rng.randrange(1 << 30), shape=shape, overlap=overlap, source=header + body)
