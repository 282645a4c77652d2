"""Random programs of the host: launches, copies, fills and views of a few arrays, with every kind of overlap."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import warp as wp

f = wp.float64
Floats = wp.array(dtype=f)
COUNT = 4


@wp.struct
class Pair:
    a: wp.array(dtype=f)
    b: wp.array(dtype=f)
    scale: f


@wp.kernel
def mix(a: Floats, b: Floats, c: Floats):
    i = wp.tid()
    c[i] = wp.sin(a[i]) * b[i] + f(0.1) * c[i]


@wp.kernel
def accumulate(a: Floats, c: Floats):
    i = wp.tid()
    c[i] += wp.tanh(a[i]) * a[i]


@wp.kernel
def in_place(a: Floats):
    i = wp.tid()
    a[i] = wp.sin(a[i]) + f(0.3) * a[i] * a[i]


@wp.kernel
def scan(a: Floats):
    for i in range(1, a.shape[0]):
        a[i] = wp.sin(a[i]) + f(0.5) * a[i - 1] * a[i]


@wp.kernel
def by_struct(s: Pair):
    i = wp.tid()
    s.a[i] = wp.tanh(s.b[i] * s.scale) + f(0.2) * s.a[i] * s.b[i]


@wp.kernel
def by_structs(s: wp.array(dtype=Pair)):
    i = wp.tid()
    for j in range(s.shape[0]):
        s[j].a[i] = wp.sin(s[j].b[i]) * s[j].scale + f(0.3) * s[j].a[i]


@wp.kernel
def rescale(s: wp.array(dtype=Pair)):
    i = wp.tid()
    s[i].scale = s[i].scale * f(1.5) + s[i].a[0] * f(0.1)


@wp.kernel
def through_indices(a: wp.indexedarray(dtype=f), b: Floats):
    i = wp.tid()
    a[i] = a[i] * f(0.5) + wp.sin(b[i])


@wp.kernel
def scatter(a: Floats, places: wp.array(dtype=int), b: Floats):
    i = wp.tid()
    wp.atomic_add(b, places[i], wp.sin(a[i]) * f(0.5))


@wp.kernel
def permute(places: wp.array(dtype=int)):
    i = wp.tid()
    places[i] = (places[i] * 2 + 1) % 4


@wp.kernel
def add_and_use(a: Floats, c: Floats):
    i = wp.tid()
    before = wp.atomic_add(c, 0, a[i] * a[i] * f(0.1))
    a[i] = wp.sin(before + a[i])


@wp.kernel
def loop(a: Floats, counts: wp.array(dtype=int), c: Floats):
    i = wp.tid()
    for _ in range(counts[i] + 1):
        c[i] = wp.sin(c[i] + a[i])
        a[i] = a[i] * f(0.9)
        if c[i] > f(0.8):
            break


class TapeProgram:
    """Runs the same random operations whenever it is called; `steps` are seeds, one per operation."""

    def __init__(self, steps: list[tuple[str, int]]) -> None:
        self.steps = steps

    def __call__(self, x: Any, y: Any) -> list[Any]:
        """Run the program on two arrays of eight numbers; gives the arrays that hold its results."""
        self._pool = [x, y, wp.zeros(8, dtype=f, requires_grad=True)]
        self._places = wp.array([3, 1, 0, 2], dtype=int)
        for name, seed in self.steps:
            OPERATIONS[name](self, random.Random(seed))
        out = wp.zeros(8, dtype=f, requires_grad=True)
        for array in self._pool:
            wp.launch(accumulate, array.size, inputs=[array, out])
        return [out, *self._pool[:3]]

    def any_array(self, rng: random.Random) -> Any:
        return rng.choice(self._pool)

    def view(self, rng: random.Random, count: int = COUNT) -> Any:
        array, kind = self.any_array(rng), rng.randrange(5)
        if kind == 0 and array.size >= 2 * count:
            return array[: 2 * count : 2]
        if kind == 1:
            return array[array.size - count :]
        if kind == 2:
            return array[::-1][:count]
        return array[1 : count + 1] if kind == 3 and array.size > count else array[:count]

    def pair(self, rng: random.Random) -> Any:
        return Pair(a=self.view(rng), b=self.view(rng), scale=rng.uniform(0.5, 1.5))

    def launch(self, kernel: Any, *args: Any, count: int = COUNT) -> None:
        wp.launch(kernel, count, inputs=list(args))

    # -- operations --------------------------------------------------------------------------------------

    def mix(self, rng: random.Random) -> None:
        self.launch(mix, self.view(rng), self.view(rng), self.view(rng))

    def accumulate(self, rng: random.Random) -> None:
        self.launch(accumulate, self.view(rng), self.view(rng))

    def overwrite(self, rng: random.Random) -> None:
        self.launch(in_place, self.view(rng))

    def scan(self, rng: random.Random) -> None:
        self.launch(scan, self.view(rng), count=1)

    def struct(self, rng: random.Random) -> None:
        pair = self.pair(rng)
        self.launch(by_struct, pair)
        pair.a, pair.scale = self.view(rng), 0.3
        self.launch(by_struct, pair)

    def structs(self, rng: random.Random) -> None:
        pairs = wp.array([self.pair(rng), self.pair(rng)], dtype=Pair)
        self.launch(by_structs, pairs)
        self.launch(rescale, pairs, count=2)
        self.launch(by_structs, pairs)
        pairs.assign(wp.array([self.pair(rng), self.pair(rng)], dtype=Pair))
        self.launch(by_structs, pairs)
        pairs.zero_()

    def indexed(self, rng: random.Random) -> None:
        places = self._places if rng.random() < 0.5 else wp.array([2, 0, 3, 1], dtype=int)
        self.launch(through_indices, self.any_array(rng)[places], self.view(rng))

    def gather(self, rng: random.Random) -> None:
        places = wp.array([1, 3, 1, rng.randrange(4)], dtype=int)
        if rng.random() < 0.5:
            wp.copy(self.view(rng), self.any_array(rng)[places])
        else:
            self._pool.append(self.any_array(rng)[places].contiguous())
        places.fill_(2)

    def scatter(self, rng: random.Random) -> None:
        self.launch(scatter, self.view(rng), self._places, self.view(rng))

    def permute(self, rng: random.Random) -> None:
        self.launch(permute, self._places)

    def add_and_use(self, rng: random.Random) -> None:
        self.launch(add_and_use, self.view(rng), self.view(rng))

    def loop(self, rng: random.Random) -> None:
        self.launch(loop, self.view(rng), self._places, self.view(rng))

    def copy(self, rng: random.Random) -> None:
        if rng.random() < 0.5:
            wp.copy(self.view(rng), self.view(rng))
        else:
            offsets = {"dest_offset": rng.randrange(2), "src_offset": rng.randrange(2)}
            wp.copy(self.any_array(rng), self.any_array(rng), **offsets, count=3)

    def clone(self, rng: random.Random) -> None:
        made = wp.clone(self.view(rng)) if rng.random() < 0.5 else wp.array(self.view(rng), requires_grad=True)
        self._pool.append(made)

    def end(self, rng: random.Random) -> None:
        """Give a part new contents, which no gradient passes."""
        part, kind = self.view(rng, rng.randrange(1, COUNT)), rng.randrange(3)
        if kind == 0:
            part.zero_()
        elif kind == 1:
            part.fill_(rng.uniform(-1.0, 1.0))
        else:
            part.assign(np.linspace(-0.5, 0.5, part.size))

    def set_slice(self, rng: random.Random) -> None:
        self.any_array(rng)[1:3] = self.view(rng, 2)

    def replay(self, rng: random.Random) -> None:
        command = wp.launch(mix, COUNT, inputs=[self.view(rng) for _ in range(3)], record_cmd=True)
        command.launch()
        command.set_param_at_index(rng.randrange(3), self.view(rng))
        command.launch()

    def rows(self, rng: random.Random) -> None:
        rows = self._pool[0].reshape((2, 4))
        self.launch(mix, rows[0], rows[1], rows[rng.randrange(2)])
        square = self._pool[1][:4].reshape((2, 2)).transpose()
        self.launch(accumulate, square[0], rows[1][:2], count=2)
        wp.copy(rows[:, 1:3], self._pool[1].reshape((2, 4))[:, ::2])


OPERATIONS: dict[str, Callable[[TapeProgram, random.Random], None]] = {
    name: value
    for name, value in vars(TapeProgram).items()
    if not name.startswith("_") and name not in ("any_array", "view", "pair", "launch")
}
