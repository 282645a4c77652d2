"""Quaternions (x, y, z, w) and rigid transforms (translation p, rotation q)."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, TypeVar

from warp._src.types.scalar_base import Number, as_number
from warp._src.types.scalars import float32, is_float
from warp._src.types.tensor_arithmetic import ComponentArithmetic
from warp._src.types.tensor_base import Tensor
from warp._src.types.vectors import (
    Vector,
    component_property,
    is_generic_scalar,
    new_tensor_class,
    short_suffix,
    tensor_scalar,
    vector,
)

__all__ = ["Quaternion", "Transform", "quaternion", "transformation"]


_Self = TypeVar("_Self", bound="Transform")


class _Components(ComponentArithmetic):
    """Indexing shared by quaternions and transforms."""

    __slots__ = ()

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            values = self.values[key]
            return vector(len(values), self.scalar).from_numbers(values) if values else []
        return self.values[key]

    def __setitem__(self, key: int | slice, value: object) -> None:
        if not isinstance(key, slice):
            self.values[key] = self.scalar.convert(as_number(value, self.name))
            return
        count = len(self.values[key])
        if count:
            self.values[key] = vector(count, self.scalar)(value).values


class Quaternion(_Components):
    """A quaternion, vector part first and real part last."""

    __slots__ = ()
    category: ClassVar[str] = "quaternion"
    x: Number
    y: Number
    z: Number
    w: Number

    def multiply(self, other: Tensor) -> Any:
        """Return the Hamilton product."""
        if not isinstance(other, Quaternion):
            return NotImplemented
        if type(other) is not type(self):
            raise TypeError(f"{self.name} and {other.name} cannot be multiplied: scalar types differ")
        return self.from_numbers(_hamilton(self, other))


class Transform(_Components):
    """A rigid transform: seven scalars, translation p(3) then rotation q(4)."""

    __slots__ = ()
    category: ClassVar[str] = "transform"

    def __init__(self, *arguments: object, p: object = None, q: object = None) -> None:
        """Make a transform from (p, q), seven scalars, a sequence, or nothing (zeros).

        With keywords, a missing p is zero and a missing q is the identity.
        """
        if p is not None or q is not None:
            if len(arguments) > 1 or (arguments and p is not None):
                raise TypeError(f"{self.name} takes p and q once each")
            translation = arguments[0] if arguments else ((0, 0, 0) if p is None else p)
            arguments = (translation, (0, 0, 0, 1) if q is None else q)
        super().__init__(*arguments)

    @classmethod
    def check_arguments(cls, arguments: tuple[object, ...]) -> None:
        """Refuse a pair whose parts are not of length 3 and 4."""
        if len(arguments) == 2:
            lengths = [len(part) if hasattr(part, "__len__") else 1 for part in arguments]
            if lengths != [3, 4]:
                raise ValueError(f"{cls.name} needs p of 3 and q of 4 components, got {lengths}")

    @classmethod
    def coerce(cls: type[_Self], value: object) -> _Self:
        """Return a copy of `value`, which may also be a pair (p, q); else TypeError, ValueError."""
        if isinstance(value, (list, tuple)) and len(value) == 2:
            cls.check_arguments(tuple(value))
            return super().coerce([*value[0], *value[1]])
        return super().coerce(value)

    @property
    def p(self) -> Vector:
        """Translation, a copy."""
        return vector(3, self.scalar).from_numbers(self.values[:3])

    @p.setter
    def p(self, value: object) -> None:
        self.values[:3] = vector(3, self.scalar)(value).values

    @property
    def q(self) -> Quaternion:
        """Rotation, a copy."""
        return quaternion(self.scalar).from_numbers(self.values[3:])

    @q.setter
    def q(self, value: object) -> None:
        self.values[3:] = quaternion(self.scalar)(value).values

    def multiply(self, other: Tensor) -> Any:
        """Return the composition that applies `other` first."""
        if not isinstance(other, Transform):
            return NotImplemented
        if type(other) is not type(self):
            raise TypeError(f"{self.name} and {other.name} cannot be multiplied: scalar types differ")
        rotation = self.q * other.q
        translation = self.p + _rotate(self.q, other.p)
        return self.from_numbers(translation.values + rotation.values)


def quaternion(dtype: Any = float32) -> type[Quaternion]:
    """Return the quaternion type of a float scalar type; TypeError for any other dtype."""
    return _quaternion_class(_float_scalar(dtype, "quaternion"))


@cache
def _quaternion_class(scalar: Any) -> type[Quaternion]:
    attributes: dict[str, Any] = {"scalar": scalar, "shape": (4,), "length": 4, "origin": (quaternion, (scalar,))}
    attributes.update({axis: component_property(index) for index, axis in enumerate("xyzw")})
    created: type[Quaternion] = new_tensor_class(Quaternion, f"quat{_suffix(scalar)}", attributes)
    return created


def transformation(dtype: Any = float32) -> type[Transform]:
    """Return the transform type of a float scalar type; TypeError for any other dtype."""
    return _transform_class(_float_scalar(dtype, "transformation"))


@cache
def _transform_class(scalar: Any) -> type[Transform]:
    attributes = {"scalar": scalar, "shape": (7,), "length": 7, "origin": (transformation, (scalar,))}
    created: type[Transform] = new_tensor_class(Transform, f"transform{_suffix(scalar)}", attributes)
    return created


def _float_scalar(dtype: Any, what: str) -> Any:
    scalar = tensor_scalar(dtype, what)
    if not is_generic_scalar(scalar) and not is_float(scalar):
        raise TypeError(f"{what} dtype must be a float type, got {scalar.name}")
    return scalar


def _suffix(scalar: Any) -> str:
    return short_suffix(scalar) or f"_t({getattr(scalar, '__name__', 'Any')})"


def _hamilton(left: Quaternion, right: Quaternion) -> list[Number]:
    apply = left.scalar.apply
    ax, ay, az, aw = left.values
    bx, by, bz, bw = right.values

    def signed_sum(*terms: tuple[str, Number, Number]) -> Number:
        total = apply("*", terms[0][1], terms[0][2])
        for sign, first, second in terms[1:]:
            total = apply(sign, total, apply("*", first, second))
        return total

    return [
        signed_sum(("+", aw, bx), ("+", bw, ax), ("+", ay, bz), ("-", by, az)),
        signed_sum(("+", aw, by), ("+", bw, ay), ("+", az, bx), ("-", bz, ax)),
        signed_sum(("+", aw, bz), ("+", bw, az), ("+", ax, by), ("-", bx, ay)),
        signed_sum(("+", aw, bw), ("-", ax, bx), ("-", ay, by), ("-", az, bz)),
    ]


def _rotate(rotation: Quaternion, point: Vector) -> Vector:
    """Return v (2 w^2 - 1) + 2 w (u x v) + 2 u (u . v), as wp.quat_rotate() does for any quaternion u, w."""
    values = [float(value) for value in rotation.values]
    x, y, z, w = values
    a, b, c = (float(value) for value in point.values)
    along = 2.0 * (x * a + y * b + z * c)
    scale = 2.0 * w * w - 1.0
    crossed = (y * c - z * b, z * a - x * c, x * b - y * a)
    return type(point)(
        a * scale + 2.0 * w * crossed[0] + x * along,
        b * scale + 2.0 * w * crossed[1] + y * along,
        c * scale + 2.0 * w * crossed[2] + z * along,
    )
