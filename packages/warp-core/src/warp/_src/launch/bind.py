"""Bind arguments to the parameters of a kernel: check them, pack them, and find the arrays among them."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warp._src.array.array import array
from warp._src.array.elements import element_layout
from warp._src.array.indexed import indexedarray
from warp._src.interop.elements import as_elements
from warp._src.interop.foreign import adapt, copied
from warp._src.launch.memory import arrays_in
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.device import Device, get_device
from warp._src.types.arrays import ArrayType, IndexedArrayType
from warp._src.types.generics import with_scalar
from warp._src.types.scalars import Scalar, bfloat16, bool_, float32, int32, is_scalar, scalar_from
from warp._src.types.signature import align_of, canonical, is_tensor, size_of, type_name
from warp._src.types.struct_type import StructInstance, Type
from warp.errors import ArgumentError, DeviceError

# Gives for an array the one of the same shape that holds its tangents.
DirectionOf = Callable[[Any], Any]
# Packs one argument; may replace it in the list of arguments, at the given index.
Packer = Callable[[Any, list[Any], int, Device], bytes]


class Binder:
    """Packs arguments for one kernel at concrete types into its argument struct (native/abi.h).

    `written` tells which parameters the kernel writes; those take only memory that is shared and writable. `offsets`
    says where in the struct each parameter is, in bytes.
    """

    def __init__(self, key: str, parameters: Sequence[tuple[str, Type]], written: frozenset[int]) -> None:
        self.key = key
        self.parameters = tuple(parameters)
        self._packers: list[Packer] = []
        self.offsets: list[int] = []
        offset = 0
        for number, (name, type) in enumerate(self.parameters):
            padding = -offset % align_of(type)
            self.offsets.append(offset + padding)
            offset += padding + size_of(type)
            packer = _packer(f"kernel '{key}', parameter '{name}'", type, number in written)
            self._packers.append(_padded(packer, padding) if padding else packer)

    def pack(self, args: list[Any], device: Device) -> bytes:
        """Pack arguments; foreign arrays in `args` are replaced by Warp arrays of the same memory.

        Raises ArgumentError, which names the kernel, the parameter and both types.
        """
        if len(args) != len(self._packers):
            raise ArgumentError(self._count_message(len(args)))
        return b"".join([packer(arg, args, n, device) for n, (packer, arg) in enumerate(zip(self._packers, args))])  # noqa: B905 - lengths are equal

    def _count_message(self, given: int) -> str:
        names = ", ".join(f"{name}: {type_name(type)}" for name, type in self.parameters)
        return f"kernel '{self.key}' takes {len(self.parameters)} arguments ({names}), but {given} were given"


def _padded(packer: Packer, padding: int) -> Packer:
    zeros = bytes(padding)

    def pack(value: Any, args: list[Any], number: int, device: Device) -> bytes:
        return zeros + packer(value, args, number, device)

    return pack


def _packer(label: str, type: Type, is_written: bool) -> Packer:
    if isinstance(type, ArrayType):
        return _array_packer(label, type, is_written)
    if isinstance(type, IndexedArrayType):
        return _indexed_packer(label, type)
    if is_scalar(type) and type is not bool_ and type.kind in "fiu" and type.size > 2:
        return _number_packer(label, type)
    return _value_packer(label, type)


def _array_packer(label: str, type: ArrayType, is_written: bool) -> Packer:
    dtype, ndim = type.dtype, type.ndim
    null = bytes(type.size)

    def pack(value: Any, args: list[Any], number: int, device: Device) -> bytes:
        if value.__class__ is array and value.dtype is dtype and value.ndim == ndim and value.device is device:
            if is_written:
                check_writable(label, value)
            descriptor: bytes = value.descriptor()
            return descriptor
        if value is None:
            return null
        args[number] = wrapped = as_array(label, type, value, is_written, device)
        return wrapped.descriptor()

    return pack


def as_array(label: str, type: ArrayType, value: Any, is_written: bool, device: Device) -> array:
    """Wrap a foreign array, or say why an argument does not fit an array parameter."""
    wrapped = _adapted(label, type, value, is_written, device)
    _check_place(label, wrapped, device)
    if wrapped.dtype is not type.dtype and wrapped is not value:
        wrapped = _with_elements(label, type, wrapped)
    if wrapped.dtype is not type.dtype or wrapped.ndim != type.ndim:
        raise ArgumentError(f"{label} is {type_name(type)}, but the argument is {_describe(wrapped)}")
    if is_written:
        check_writable(label, wrapped)
    return wrapped


def _check_place(label: str, value: Any, device: Device) -> None:
    """Refuse arrays in memory that kernels on a device cannot access."""
    place = value.device
    if place is device:
        return
    if isinstance(device, CudaDevice):
        # Pinned memory is seen by every device, and that of a device by its peers.
        is_seen = device.can_access(place) if isinstance(place, CudaDevice) else place.is_cpu and value.pinned
        if is_seen:
            return
    raise ArgumentError(f"{label}: the array is on device '{place}', the launch on '{device}'")


def _adapted(label: str, type: ArrayType, value: Any, is_written: bool, device: Device) -> array:
    if isinstance(value, array):
        return value
    try:
        found = adapt(value, device)
    except (ArgumentError, DeviceError, BufferError) as error:
        raise ArgumentError(f"{label}: {error}") from error
    if isinstance(found, array):
        return found
    if found is None:
        found = copied(value)
        if found is None:
            raise ArgumentError(f"{label} is {type_name(type)}, but the argument is {_describe(value)}")
        if is_written:
            raise ArgumentError(
                f"{label} is written by the kernel, but {_describe(value)} does not say that it shares its memory"
            )
    return _from_numpy(label, type, found)


def _with_elements(label: str, type: ArrayType, value: array) -> array:
    """See the trailing dimensions of a foreign array of scalars as elements of a parameter's type."""
    element = element_layout(type.dtype)
    if element.scalar != value.element.scalar or not element.shape:
        return value
    made = array.wrap(as_elements(label, value._values, element), element, value.device)
    made.owner, made.link = value, value.link
    return made


def check_writable(label: str, value: array) -> None:
    """Raise ArgumentError for an array that a kernel must not write."""
    if value.is_readonly:
        raise ArgumentError(f"{label} is written by the kernel, but the memory of the array is read-only")
    if value.overlaps_itself():
        raise ArgumentError(
            f"{label} is written by the kernel, but elements of the array share memory (shape {value.shape}, "
            f"strides {value.strides}); pass a copy: contiguous()"
        )


def _from_numpy(label: str, type: ArrayType, value: Any) -> array:
    element = element_layout(type.dtype)
    if value.dtype != element.scalar:
        if not _is_bfloat16(value.dtype, type.dtype):
            raise ArgumentError(
                f"{label} is {type_name(type)}, but the argument is {_describe(value)}; it would have to be converted: "
                "pass wp.array(...) of it"
            )
        value = value.view(element.scalar)
    try:
        return array.wrap(as_elements(label, value, element), element, get_device("cpu"))
    except ArgumentError as error:
        raise ArgumentError(f"{label} is {type_name(type)}, but the argument is {_describe(value)}: {error}") from error


def _is_bfloat16(foreign: Any, dtype: Any) -> bool:
    """Tell whether elements of another library's bfloat16, which NumPy does not have itself, are wanted as such."""
    return getattr(dtype, "scalar", dtype) is bfloat16 and scalar_from(foreign) is bfloat16


def _indexed_packer(label: str, type: IndexedArrayType) -> Packer:
    def pack(value: Any, _args: list[Any], _number: int, device: Device) -> bytes:
        if isinstance(value, indexedarray) and value.dtype is type.dtype and value.ndim == type.ndim:
            _check_place(label, value.data, device)
            descriptor: bytes = value.descriptor()
            return descriptor
        raise ArgumentError(f"{label} is {type_name(type)}, but the argument is {_describe(value)}")

    return pack


def _number_packer(label: str, type: Any) -> Packer:
    fast = struct.Struct("=" + type.format).pack
    slow = _value_packer(label, type)
    simple = (float, int) if type.kind == "f" else (int,)

    def pack(value: Any, args: list[Any], number: int, device: Device) -> bytes:
        if value.__class__ in simple:
            try:
                return fast(value)
            except (struct.error, OverflowError):
                return slow(value, args, number, device)
        return slow(value, args, number, device)

    return pack


def _value_packer(label: str, type: Any) -> Packer:
    def pack(value: Any, _args: list[Any], _number: int, _device: Device) -> bytes:
        try:
            packed: bytes = type.pack(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                f"{label} is {type_name(type)}, but the argument is {_describe(value)}: {error}"
            ) from error
        return packed

    return pack


# -- types of arguments --------------------------------------------------------------------------------


def type_of(value: Any) -> Type:
    """The type of an argument for a generic parameter. Raises ArgumentError for what no kernel takes."""
    if isinstance(value, array):
        return ArrayType(value.dtype, value.ndim)
    if isinstance(value, indexedarray):
        return IndexedArrayType(value.dtype, value.ndim)
    if isinstance(value, StructInstance):
        return value._struct_type
    if isinstance(value, Scalar) or is_tensor(value.__class__):
        found: Type = value.__class__
        return found
    for python_type, type in ((bool, bool_), (int, int32), (float, float32)):
        if isinstance(value, python_type):
            return type
    if isinstance(value, np.generic):
        return canonical(value.dtype.type)
    foreign = adapt(value, get_device())
    foreign = copied(value) if foreign is None else foreign
    if isinstance(foreign, np.ndarray):
        foreign = array(foreign, copy=False)
    if foreign is not None:
        return ArrayType(foreign.dtype, foreign.ndim)
    raise ArgumentError(f"no kernel parameter can take {_describe(value)}")


def seen_as(pattern: Any, found: Any, value: Any) -> Any:
    """The type of a foreign array of scalars, its trailing dimensions seen as vectors or matrices of a parameter."""
    if not (isinstance(pattern, ArrayType) and is_tensor(pattern.dtype) and isinstance(found, ArrayType)):
        return found
    inner = pattern.dtype.shape
    if isinstance(value, (array, indexedarray)) or is_tensor(found.dtype) or found.ndim - pattern.ndim != len(inner):
        return found
    shape = tuple([int(extent) for extent in getattr(value, "shape", inner)[-len(inner) :]])
    return ArrayType(with_scalar(pattern.dtype, found.dtype, shape), pattern.ndim)


def captured(value: Any) -> Any:
    """A copy of an argument as it is now: values are copied, arrays are referred to."""
    if isinstance(value, (StructInstance, np.ndarray, list)) or is_tensor(value.__class__):
        return copy.deepcopy(value)
    return value


def direction(value: Any, type: Any, direction_of: DirectionOf) -> Any:
    """The direction of an argument: that of its arrays, and zero for all that is given by value."""
    if isinstance(value, array):
        return direction_of(value)
    if isinstance(value, indexedarray):
        return indexedarray(direction_of(value.data), value.indices)
    if isinstance(value, StructInstance):
        made = value._struct_type()
        for name, field in value._struct_type.fields.items():
            member = getattr(value, name)
            if member is not None and (arrays_in(member) or isinstance(member, StructInstance)):
                setattr(made, name, direction(member, field, direction_of))
        return made
    return None if value is None else type() if is_tensor(type) else 0


def _describe(value: Any) -> str:
    if isinstance(value, array):
        return f"{type_name(ArrayType(value.dtype, value.ndim))} on '{value.device}'"
    if isinstance(value, np.ndarray):
        return f"a NumPy array of {value.dtype} with shape {value.shape}"
    if isinstance(value, StructInstance):
        return f"struct {value._struct_type.name}"
    name = (
        type_name(value.__class__)
        if isinstance(value, Scalar) or is_tensor(value.__class__)
        else value.__class__.__qualname__
    )
    text = repr(value)
    return f"{name} {text}" if len(text) < 40 else f"a {name}"


__all__ = ["Binder", "DirectionOf", "as_array", "captured", "check_writable", "direction", "seen_as", "type_of"]
