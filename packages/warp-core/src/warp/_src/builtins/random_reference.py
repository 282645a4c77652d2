"""Random numbers on NumPy values, in the order of operations of the C++ text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warp._src.builtins.reference import Array, pack

_MASK = 0xFFFFFFFF
_TURN = np.float32(6.2831855)
_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)


def pcg(state: int) -> int:
    """Hash 32 bits (Jarzynski and Olano, 2020)."""
    mixed = (state * 747796405 + 2891336453) & _MASK
    word = (((mixed >> ((mixed >> 28) + 4)) ^ mixed) * 277803737) & _MASK
    return (word >> 22) ^ word


def seeded(seed: Any, offset: Any = None) -> Any:
    """Give the state for a seed and, if there is one, an offset."""
    added = 0 if offset is None else pcg(int(offset) & _MASK)
    return np.uint32(pcg((int(seed) + added) & _MASK))


class Draws:
    """A state that every draw replaces by its hash."""

    def __init__(self, state: Any) -> None:
        self.state = int(state)

    def bits(self) -> int:
        self.state = pcg(self.state)
        return self.state

    def unit(self) -> Any:
        """Give a float32 in [0, 1) that is a multiple of 2^-24."""
        return np.float32((self.bits() >> 8) * 2.0**-24)

    def below(self, size: int) -> int:
        """Give an integer in [0, size), 0 for an empty range."""
        bits = self.bits()
        return bits % size if size else 0


def drawn(draw: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Make a reference from a function of `Draws`: it gives the number and the new state."""

    def reference(state: Any, *args: Any) -> tuple[Any, Any]:
        draws = Draws(state)
        return draw(draws, *args), np.uint32(draws.state)

    return reference


def integer(draws: Draws) -> Any:
    return np.uint32(draws.bits()).astype(np.int32)


def integer_between(draws: Draws, low: Any, high: Any) -> Any:
    return np.uint32((int(low) + draws.below((int(high) - int(low)) & _MASK)) & _MASK).astype(low.dtype)


def between(draws: Draws, low: Any, high: Any) -> Any:
    return (high - low) * draws.unit() + low


def normal(draws: Draws) -> Any:
    u, v = draws.unit(), draws.unit()
    return np.sqrt(np.float32(-2) * np.log(u if u > 0 else np.float32(2.0**-25))) * np.cos(_TURN * v)


def _on_circle(radius: Any, turn: Any) -> Array:
    return pack([radius * np.cos(_TURN * turn), radius * np.sin(_TURN * turn)])


def _on_sphere(z: Any, turn: Any) -> Array:
    return pack([*_on_circle(np.sqrt(np.maximum(_ONE - z * z, np.float32(0))), turn), z])


def triangle(draws: Draws) -> Array:
    root, v = np.sqrt(draws.unit()), draws.unit()
    return pack([_ONE - root, v * root])


def ring(draws: Draws) -> Array:
    return _on_circle(_ONE, draws.unit())


def disk(draws: Draws) -> Array:
    return _on_circle(np.sqrt(draws.unit()), draws.unit())


def sphere_surface(draws: Draws) -> Array:
    return _on_sphere(_ONE - _TWO * draws.unit(), draws.unit())


def hemisphere_surface(draws: Draws) -> Array:
    return _on_sphere(_ONE - draws.unit(), draws.unit())


def sphere(draws: Draws) -> Array:
    return sphere_surface(draws) * np.cbrt(draws.unit())


def hemisphere(draws: Draws) -> Array:
    return hemisphere_surface(draws) * np.cbrt(draws.unit())


def square(draws: Draws) -> Array:
    return pack([draws.unit() - _HALF, draws.unit() - _HALF])


def cube(draws: Draws) -> Array:
    return pack([draws.unit() - _HALF, draws.unit() - _HALF, draws.unit() - _HALF])


def _log_factorial(k: Any) -> Any:
    if k < 9.5:
        return np.log(np.prod(np.arange(2, int(k) + 1, dtype=np.float32), dtype=np.float32))
    n = k + _ONE
    inverse = _ONE / n
    series = inverse * (np.float32(0.0833333333) - inverse * inverse * np.float32(0.0027777778))
    return (n - _HALF) * np.log(n) - n + np.float32(0.9189385332) + series


def poisson(draws: Draws, lam: Any) -> Any:
    """Count by multiplying uniform numbers below 10 (Knuth), by transformed rejection above (Hormann 1993, PTRS)."""
    if not lam > 0:
        return np.uint32(0)
    if lam >= 10:
        return _rejected(draws, lam)
    limit, product, count = np.exp(-lam), draws.unit(), 0
    while product > limit:
        count += 1
        product = product * draws.unit()
    return np.uint32(count)


def _rejected(draws: Draws, lam: Any) -> Any:
    real = np.float32
    b = real(0.931) + real(2.53) * np.sqrt(lam)
    a = real(-0.059) + real(0.02483) * b
    inverse_alpha = real(1.1239) + real(1.1328) / (b - real(3.4))
    accepted = real(0.9277) - real(3.6224) / (b - _TWO)
    while True:
        u, v = draws.unit() - _HALF, draws.unit()
        rest = _HALF - abs(u)
        k = np.floor((_TWO * a / rest + b) * u + lam + real(0.43))
        if rest >= 0.07 and v <= accepted:
            return np.uint32(k)
        if k < 0 or (rest < 0.013 and v > rest):
            continue
        left = np.log(v) + np.log(inverse_alpha) - np.log(a / (rest * rest) + b)
        if left <= -lam + k * np.log(lam) - _log_factorial(k):
            return np.uint32(k)


__all__ = ["Draws", "drawn", "pcg", "seeded"]
