"""Random kernels in the wider language: matrices, generics, slices, local arrays, static values, wrap-around."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.differential.memory_programs import MIXTURE, MemoryWriter, launched
from tests.differential.programs import EPILOGUE, FLOATS, HEADER, VECTORS, Program

MATRICES = ("m0", "m1")

DEFINITIONS = """
from enum import IntEnum
from typing import Any

import warp as wp

TABLE = (0.25, -0.5, 0.125)


class Mode(IntEnum):
    ONE = 1
    TWO = 2


def make_scaled(factor: float):
    @wp.func
    def scaled(a: Any, offset: Any):
        return factor * a + offset

    return scaled


half = make_scaled(0.5)
third = make_scaled(0.3)


@wp.func
def total(values: wp.array(dtype=wp.float64)):
    result = wp.float64(0.0)
    for place in range(values.shape[0]):
        result += values[place] * wp.float64(place + 1)
    return result


@wp.func
def smooth(values: wp.array(dtype=wp.float64), weight: wp.float64 = wp.float64(0.5)):
    for place in range(1, values.shape[0]):
        values[place] = values[place - 1] * weight + wp.tanh(values[place])


@wp.func
def turned(a: Any, b: Any):
    return wp.tanh(a[0] + b[1]), b * 0.5 + a * 0.25
""".lstrip()

PROLOGUE = """
    m0 = wp.mat22d(f0, f1, wp.sin(f2), f3)
    m1 = wp.mat22d(wp.tanh(f3), f2, f0, 0.5 * f1)
    w0 = wp.vec2d(f1, f0)
    u0 = wp.uint32(k0 * 77777777 + 11)
    h0 = wp.int8(k0 * 50)
    buf = wp.zeros(3, dtype=wp.float64)
    buf[1] = f0
    pages = wp.zeros(shape=(2, 3), dtype=wp.float64)
    pages[i % 2, 1] = f1 * f2
""".lstrip("\n")

WIDE_MIXTURE = """
    acc[i % 4] += wp.tanh(m0[0, 1] + m1[1, 0]) * w0[1] + 0.01 * wp.float64(u0 % wp.uint32(64)) * m0[1, 1]
    out[i % 5] += wp.tanh(total(buf)) + pages[1, 1] * pages[0, 2] + 0.01 * wp.float64(h0) * f0
""".lstrip("\n")


class WideWriter(MemoryWriter):
    """Draws statements of the wider language as often as others."""

    def statement(self, depth: int, in_loop: bool) -> None:
        forms: tuple[Callable[[], str], ...] = (
            self.matrices,
            self.matrices,
            self.slices,
            self.generic,
            self.local,
            self.local,
            self.whole,
            self.views,
            self.static,
        )
        if self.rng.random() < 0.6:
            self.emit(forms[self.rng.randrange(len(forms))](), depth)
        else:
            super().statement(depth, in_loop)

    def name(self) -> str:
        return self.pick(FLOATS)

    def matrices(self) -> str:
        first, second = self.rng.sample(MATRICES, 2)
        row = f"{self.integer()} % 2"
        return self.draw(
            lambda: f"{first} = {first} * wp.tanh({self.name()}) + 0.3 * {second}",
            lambda: f"{first}[{row}, {self.rng.randrange(2)}] = {self.bounded()}",
            lambda: f"{first}[0, {row}] += {self.bounded()}",
            lambda: f"{self.name()} = 0.3 * wp.determinant({first}) + wp.tanh(wp.trace({second}))",
            lambda: f"w0 = 0.4 * ({first} @ w0) + w0 * 0.25",
            lambda: f"{first} = 0.3 * ({first} @ {second})",
            lambda: f"{first}[{self.rng.randrange(2)}] = w0 * 0.5",
            lambda: f"w0 = 0.5 * {first}[{row}]",
            lambda: f"{first} = wp.transpose({second}) * 0.7",
        )

    def slices(self) -> str:
        name, other = self.pick(VECTORS), self.pick(VECTORS)
        return self.draw(
            lambda: f"w0 = 0.5 * {name}[1:3]",
            lambda: f"{name}[0:2] = 0.5 * {other}[1:] + w0 * 0.25",
            lambda: f"{name}[::2] = w0 * 0.5",
            lambda: f"w0 = 0.5 * {self.pick(MATRICES)}[:, {self.rng.randrange(2)}]",
            lambda: f"{self.name()} = wp.dot({name}[:2], w0) * 0.5",
        )

    def generic(self) -> str:
        name, other = self.rng.sample(FLOATS, 2)
        vector = self.pick(VECTORS)
        return self.draw(
            lambda: f"{name} = half({other}, wp.tanh({name}))",
            lambda: f"{vector} = third({vector}, 0.4 * {self.pick(VECTORS)})",
            lambda: f"{self.pick(MATRICES)} = half({self.pick(MATRICES)}, 0.4 * {self.pick(MATRICES)})",
            lambda: f"{name}, w0 = turned(w0, 0.5 * w0)",
            lambda: f"{name}, {vector} = turned(a=0.5 * v0, b=0.5 * v1)",
        )

    def local(self) -> str:
        place = f"{self.integer()} % 3"
        page = f"{self.integer()} % 2, {self.rng.randrange(3)}"
        return self.draw(
            lambda: f"buf[{place}] = {self.bounded()}",
            lambda: f"buf[{place}] += {self.bounded()}",
            lambda: f"pages[{page}] = buf[{place}] * {self.name()} * 0.5",
            lambda: f"{self.name()} = wp.tanh(buf[{place}] - pages[{page}])",
            lambda: "smooth(buf)",
            lambda: f"smooth(pages[{self.integer()} % 2], weight=wp.tanh({self.name()}))",
            lambda: f"{self.name()} = wp.tanh(total(pages[{self.rng.randrange(2)}])) * 0.5",
        )

    def whole(self) -> str:
        number = self.rng.randrange(1, 5)
        return self.draw(
            lambda: "u0 = u0 * wp.uint32(1664525) + wp.uint32(1013904223)",
            lambda: f"u0 = (u0 ^ (u0 >> wp.uint32({number}))) - wp.uint32({self.integer()})",
            lambda: f"u0 = ~u0 | (u0 << wp.uint32({number}))",
            lambda: f"h0 = h0 * wp.int8({2 * number + 1}) + wp.int8({self.integer()} * 40)",
            lambda: f"h0 = -h0 - wp.int8({number * 30})",
            lambda: f"{self.name()} = 0.01 * wp.float64(u0 % wp.uint32(97)) * {self.name()}",
            lambda: f"k0 = wp.int32(u0 & wp.uint32({number}))",
            lambda: f"k1 = 2 if h0 > wp.int8({10 * number}) else Mode.ONE",
        )

    def views(self) -> str:
        name = self.name()
        return self.draw(
            lambda: f"{name} = 0.3 * wp.tanh(total(x[{self.rng.randrange(3)}:]))",
            lambda: f"{name} = 0.3 * wp.tanh(total(grid[{self.at(3)}]))",
            lambda: f"{name} = 0.3 * wp.tanh(total(grid[:, {self.rng.randrange(4)}]))",
            lambda: f"{name} = 0.3 * wp.tanh(total(out[::-1]))",
            lambda: f"{name} = 0.5 * x[-{self.rng.randrange(1, 5)}] + 0.1 * grid[-1, {self.at(4)}]",
            lambda: f"smooth(acc[{self.integer()} % 2 :])",
        )

    def static(self) -> str:
        number = self.rng.randrange(3)
        return self.draw(
            lambda: f"{self.name()} = wp.static(TABLE[{number}]) * {self.bounded()}",
            lambda: f"{self.name()} += TABLE[{number}] * {self.pick(FLOATS)} * 0.5",
            lambda: f"k0 = wp.static(len(TABLE) + Mode.TWO) % {number + 2}",
        )


def generate_wide_program(rng: random.Random) -> Program:
    """Draw a program of the wider language, and how it is launched."""
    writer = WideWriter(rng)
    writer.block(0, False, rng.randrange(6, 16))
    header = DEFINITIONS + HEADER.replace("import warp as wp\n", "", 1) + PROLOGUE
    return launched(rng, header, "\n".join(writer.lines) + "\n" + WIDE_MIXTURE + EPILOGUE + MIXTURE)
