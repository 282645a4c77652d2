"""The array: elements of one type in up to four dimensions, and their gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np

from warp._src.array import contents, copying, cuda_interface, dlpack_export
from warp._src.array.convert import as_values
from warp._src.array.core import ArrayCore, fill_slots
from warp._src.array.elements import (
    ElementLayout,
    contiguous_strides,
    element_layout,
    host_element,
    normalise_shape,
)
from warp._src.array.indexed import indexed_view, indexedarray, is_index_array
from warp._src.array.indexing import parse_index
from warp._src.array.memory import (
    ForeignMemory,
    Values,
    reshaped_strides,
    span,
    values_at,
    view_bytes,
)
from warp._src.array.viewing import reinterpret
from warp._src.plugin_host import array_reader
from warp._src.recording.recorder import mark_written
from warp._src.runtime.device import Device, get_device
from warp._src.types.arrays import ArrayType
from warp._src.types.scalars import Scalar, bfloat16
from warp._src.types.struct_type import StructInstance
from warp._src.types.tensor_base import Tensor
from warp.errors import ArgumentError

HostList: TypeAlias = list[Any]
# Data that no plugin is asked about.
_PLAIN: Final = (list, tuple, np.ndarray, np.generic, bool, int, float, Scalar, Tensor, StructInstance)
_PARAMETERS: Final = ("data", "dtype", "shape", "strides", "length", "ptr")


class array(ArrayCore):  # noqa: N801 - the name users know
    """Elements of one type in memory that kernels, NumPy and frameworks can share.

    `array(dtype=..., ndim=...)` without data, shape and ptr is an annotation, as is `array[dtype]`.
    """

    __slots__ = ()

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Make an instance, or an annotation if there is nothing to make it from."""
        given = dict(zip(_PARAMETERS, arguments, strict=False)) | keywords
        if all(given.get(name) is None for name in ("data", "shape", "length", "ptr")):
            ndim = given.get("ndim")
            return ArrayType(given.get("dtype", Any), 1 if ndim is None else ndim)
        return object.__new__(cls)

    def __class_getitem__(cls, dtype: Any) -> ArrayType:
        return ArrayType(dtype, 1)

    def __init__(
        self,
        data: Any = None,
        dtype: Any = Any,
        shape: Any = None,
        strides: Any = None,
        length: int | None = None,
        ptr: int | None = None,
        capacity: int | None = None,
        device: Any = None,
        pinned: bool = False,
        copy: bool = True,
        owner: Any = None,
        deleter: Callable[[int, int], object] | None = None,
        ndim: int | None = None,
        grad: array | None = None,
        requires_grad: bool = False,
        retain_grad: bool = False,
    ) -> None:
        """Make an array from data, from a shape (zeros), or around memory at an address.

        `data` is a number, a nested sequence of numbers, tensors or structs, a NumPy array of any layout and byte
        order, another array, or anything with an array interface. Without `dtype` it keeps NumPy's type. With
        `copy=False` its memory is shared; what has none, as a list, is copied all the same. `strides` are in bytes.
        `deleter(ptr, capacity)` is called when the memory at `ptr` is no longer used; `owner` is kept alive until then.
        ArgumentError names the argument that is wrong. A copy of an array is recorded on tapes; gradients flow through
        it if it has `requires_grad` and the same element type.
        """
        place = get_device(device)
        extents = _extents(shape, length)
        memory: object = None
        seen: array | None = None
        if ptr is not None:
            values, element = _at_address(ptr, dtype, extents, strides, capacity, owner, deleter)
        elif data is None:
            element = element_layout(float if dtype is Any else dtype)
            extents = extents if extents is not None else ()
            steps = None if strides is None else normalise_shape(strides, "strides")
            made = self.new(extents, element, place, True, steps, pinned)
            values, memory = made._values, made.owner
        elif (seen := _foreign_array(data, dtype)) is not None:
            values, element, memory = _from_array(seen, dtype, extents, copy, place, pinned)
        else:
            if extents is not None and isinstance(data, (bool, int, float)):
                data = np.full(extents, data)
            values, element, keep = as_values(data, dtype, extents, copy)
            owner = owner if keep is None else keep
            if place.is_cuda or pinned:
                values, memory = self._moved(values, element, place, pinned, copy)
        if ndim is not None and values.ndim - len(element.shape) != ndim:
            raise ArgumentError(f"ndim: expected {ndim} dimensions, got {values.ndim - len(element.shape)}")
        fill_slots(self, values, element, place)
        self.owner = owner if memory is None else memory
        self.pinned = pinned and place.is_cpu
        if seen is not None and not copy and element.dtype is seen.dtype:
            self.link = seen.link
        self._requires_grad = requires_grad
        self._retain_grad = retain_grad
        if grad is not None:
            self.grad = grad
        if copy and isinstance(data, array) and data.dtype is self.dtype and self.size:
            copying.note_copy(self, data, detaches=data.requires_grad and not self.requires_grad)

    def _moved(
        self, values: Values, element: ElementLayout, place: Device, pinned: bool, copy: bool
    ) -> tuple[Values, object]:
        """Copy values of the host to a device or to pinned memory; gives the values there and their memory."""
        if not copy:
            raise ArgumentError(f"copy: memory of the host cannot be shared with device '{place}'; use copy=True")
        shape = values.shape[: values.ndim - len(element.shape)]
        made = self.new(shape, element, place, False, None, pinned)
        contents.replace(made, values)
        return made._values, made.owner

    def numpy(self) -> Values:
        """Return a NumPy view of the memory, which it keeps alive; elements add trailing dimensions.

        Of an array on a CUDA device it is a copy, made when everything queued on the device's current stream has run.
        """
        if self.device.is_cuda:
            return contents.to_host(self)
        view: Values = self._values.view()
        return view

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device.is_cuda:
            raise AttributeError("an array on a CUDA device has no __array_interface__")
        interface: dict[str, Any] = self._values.__array_interface__
        return interface

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.device.is_cuda:
            raise AttributeError("an array on the CPU has no __cuda_array_interface__")
        return cuda_interface.describe(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Values:
        if self.device.is_cuda:
            there = self.numpy()
            return there if dtype is None else there.astype(dtype, copy=False)
        if dtype is not None and np.dtype(dtype) != self._values.dtype:
            converted: Values = self._values.astype(dtype)
            return converted
        return self._values.copy() if copy else self.numpy()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return dlpack_export.export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack_export.device_of(self.device)

    def list(self) -> HostList:
        """Return the elements in row-major order as Python numbers, tensors or struct instances."""
        element = self.element
        if not element.shape and element.scalar.names is None:
            flat: HostList = self._numbers().ravel().tolist()
            return flat
        values = self.numpy().reshape((-1, *element.shape))
        return [host_element(element, value) for value in values]

    def mark_read(self) -> None:
        """State that the function recorded next with `Tape.record_func` needs the values that the array has now."""
        self.is_read = True

    def mark_write(self) -> None:
        """State that the array has been written, by what is recorded next with `Tape.record_func` if it is."""
        self.is_written = True
        mark_written((self,))

    # ------------------------------------------------------------------ changing

    def assign(self, src: Any) -> None:
        """Copy values from an array, a NumPy array or a nested sequence with as many elements; recorded on tapes."""
        if not isinstance(src, (array, indexedarray)) and _foreign_array(src, self.dtype) is not None:
            src = array(src, dtype=self.dtype, device=self.device)
        copying.assign(self, src if isinstance(src, (array, indexedarray)) else self._converted(src))

    def _converted(self, src: Any) -> Values:
        if isinstance(src, (bool, int, float)):
            raise ArgumentError(f"src must be a sequence or an array, got {type(src).__qualname__}; use fill_()")
        values, element, _ = as_values(src, self.dtype, None, True)
        if values.size != self._values.size:
            shape = values.shape[: values.ndim - len(element.shape)]
            raise ArgumentError(f"src of shape {shape} does not fit into {self!r}")
        shaped: Values = values.reshape(self._values.shape)
        return shaped

    def fill_(self, value: Any) -> None:
        """Set every element to a value; a number fills all components of tensors. Recorded on tapes."""
        copying.fill(self, value, "fill_")

    def zero_(self) -> None:
        """Set every element to zero. Recorded on tapes."""
        copying.fill(self, 0, "zero_")

    def __setitem__(self, key: Any, value: Any) -> None:
        target = self._view_of_index(parse_index(key, self.shape).key)
        if isinstance(value, (array, indexedarray)):
            copying.assign(target, value)
        elif isinstance(value, (list, np.ndarray)) and np.ndim(value) > len(self.element.shape):
            copying.assign(target, target._converted(value))
        else:
            copying.fill(target, value, "setitem")

    # ------------------------------------------------------------------ views

    def __getitem__(self, key: Any) -> Any:
        """Return a view that shares memory and gradient, the host value of one element, or an indexed array.

        Slices have positive steps. Ints in every dimension give a Python number, tensor or struct; a 1-D int32 array
        gives an `indexedarray`.
        """
        if is_index_array(key) or (isinstance(key, tuple) and any(map(is_index_array, key))):
            return indexed_view(self, key)
        index = parse_index(key, self.shape)
        if index.is_element:
            if self.device.is_cuda:
                return host_element(self.element, self._view_of_index(index.key).numpy()[()])
            return host_element(self.element, self._values[index.key])
        return self._view_of_index(index.key)

    def _view_of_index(self, key: tuple[int | slice, ...]) -> array:
        # With ints only, NumPy gives a scalar instead of a view.
        values_key = (*key, ...)
        return self._view(self._values[values_key], self.element, lambda source: source._view_of_index(key))

    def _view(self, values: Values, element: ElementLayout, derive: Callable[[array], array] | None) -> array:
        made = object.__new__(array)
        fill_slots(made, values, element, self.device)
        made.owner = self.owner
        made.pinned = self.pinned
        made._parent = self
        made._derive = derive
        made._requires_grad = None if derive is not None else False
        made._retain_grad = None
        return made

    def reshape(self, shape: Any) -> array:
        """Return a view of another shape; one dimension may be -1. ArgumentError if that needs a copy."""
        wanted = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        inner = self.element.shape
        if -1 in wanted:
            rest = int(np.prod([size for size in wanted if size != -1]))
            wanted = tuple(self.size // max(rest, 1) if size == -1 else size for size in wanted)
        wanted = normalise_shape(wanted)
        if int(np.prod(wanted)) != self.size:
            raise ArgumentError(f"shape: {self.size} elements of {self!r} do not fit into shape {shape}")
        steps = reshaped_strides(self.shape, self.strides, wanted, self.element.size)
        if steps is None:
            raise ArgumentError(f"{self!r} with strides {self.strides} cannot be reshaped in place; call contiguous()")
        if self.is_contiguous:
            values = self._values.reshape(wanted + inner)
        else:
            strides = steps + self.element.strides
            values = values_at(self.ptr, wanted + inner, strides, self.element.scalar, self._values, self.is_readonly)
        return self._view(values, self.element, lambda source: source.reshape(wanted))

    def flatten(self) -> array:
        """Return a 1-D view. ArgumentError if that needs a copy."""
        return self.reshape((self.size,))

    def view(self, dtype: Any) -> array:
        """Return the memory seen as another type.

        A type of the same size keeps the shape; one as large as the last dimension takes its place; a tensor's scalar
        type adds its components as dimensions. The gradient follows where the scalar types are equal.
        """
        values, element = reinterpret(self._values, self.element, element_layout(dtype))
        same = element.scalar == self.element.scalar
        return self._view(values, element, (lambda source: source.view(dtype)) if same else None)

    def transpose(self, axes: Any = None) -> array:
        """Return a view with its dimensions in another order, reversed by default."""
        order = tuple(reversed(range(self.ndim))) if axes is None else normalise_shape(axes, "axes")
        if sorted(order) != list(range(self.ndim)):
            raise ArgumentError(f"axes must be an order of {self.ndim} dimensions, got {axes}")
        inner = tuple(range(self.ndim, self._values.ndim))
        return self._view(self._values.transpose(order + inner), self.element, lambda source: source.transpose(order))

    def contiguous(self) -> array:
        """Return the array itself, or a copy without gaps; recorded on tapes."""
        return self if self.is_contiguous else copying.clone(self)

    def to(self, device: Any, requires_grad: bool | None = None) -> array:
        """Return the array itself if it is on `device`, else a copy there."""
        place = get_device(device)
        return self if place is self.device else copying.clone(self, place, requires_grad)

    def __copy__(self) -> array:
        """Return a view of the whole array, as `copy.copy` does."""
        return self._view_of_index(())

    def __deepcopy__(self, memo: dict[int, Any]) -> array:
        """Return an array with memory and gradient of its own, as `copy.deepcopy` does; recorded on tapes."""
        made = copying.clone(self)
        if self.requires_grad and self._grad is not None:
            made.grad = self._grad.contents.copy()
        memo[id(self)] = made
        return made

    # ------------------------------------------------------------------ looks

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("an array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __str__(self) -> str:
        return str(self._numbers())

    def _numbers(self) -> Values:
        is_narrow = getattr(self.dtype, "scalar", self.dtype) is bfloat16
        return bfloat16.decode_array(self.numpy()) if is_narrow else self.numpy()

    def __repr__(self) -> str:
        return f"array(shape={self.shape}, dtype={_dtype_name(self.dtype)})"


def _extents(shape: Any, length: int | None) -> tuple[int, ...] | None:
    if shape is not None and length is not None:
        raise ArgumentError("length and shape cannot both be given")
    if length is not None:
        return normalise_shape(length, "length")
    return None if shape is None else normalise_shape(shape)


def _at_address(
    ptr: int, dtype: Any, shape: Any, strides: Any, capacity: int | None, owner: Any, deleter: Any
) -> tuple[Values, ElementLayout]:
    if shape is None:
        raise ArgumentError("shape is required with ptr")
    element = element_layout(float if dtype is Any else dtype)
    steps = contiguous_strides(shape, element.size) if strides is None else normalise_shape(strides, "strides")
    needed = span(shape, steps, element.size)
    if not ptr and needed:
        raise ArgumentError(f"ptr must be the address of {needed} bytes, got {ptr!r}")
    if capacity is not None and capacity < needed:
        raise ArgumentError(f"capacity: shape {shape} with strides {steps} needs {needed} bytes, got {capacity}")
    memory = ForeignMemory(ptr, max(needed, capacity or 0), owner, deleter, readonly=False)
    return view_bytes(np.asarray(memory), shape, steps, element), element


def _foreign_array(data: Any, dtype: Any) -> array | None:
    """Return data that is an array of ours, that a plugin knows, or that is on a CUDA device; None for other data."""
    if isinstance(data, array):
        return data
    if not isinstance(data, _PLAIN):
        reader = array_reader(data.__class__)
        if reader is not None:
            read: array = reader(data)
            return read
    if hasattr(data, "__cuda_array_interface__"):
        return cuda_interface.read(array, data, dtype)
    return None


def _from_array(
    data: array, dtype: Any, shape: Any, copy: bool, place: Device, pinned: bool
) -> tuple[Values, ElementLayout, Any]:
    wanted = data.dtype if dtype is Any else dtype
    if not (data.device.is_cuda or place.is_cuda or (pinned and copy)):
        values, element, _ = as_values(_numbers(data, wanted) if copy else data._values, wanted, shape, copy)
        return values, element, None if copy else data
    if not copy:
        if data.device is not place:
            raise ArgumentError(f"copy: memory of device '{data.device}' cannot be shared with '{place}'")
        seen = data if element_layout(wanted).dtype is data.dtype else data.view(wanted)
        seen = seen if shape is None else seen.reshape(shape)
        return seen._values, seen.element, data
    if element_layout(wanted).dtype is data.dtype and (shape is None or math.prod(shape) == data.size):
        made = data.new(data.shape if shape is None else shape, data.element, place, False, None, pinned)
        contents.copy_part(contents.Part(made, 0, made.size), contents.Part(data, 0, data.size))
        return made._values, made.element, made.owner
    converted = array(_numbers(data, wanted), dtype=wanted, shape=shape, device=place, pinned=pinned)
    return converted._values, converted.element, converted.owner


def _numbers(data: array, wanted: Any) -> Values:
    """Return the values as NumPy sees them; between bfloat16 and other types as numbers, not as bits."""
    values: Values = data.numpy()
    wanted = element_layout(wanted).dtype
    is_bits, wants_bits = (getattr(dtype, "scalar", dtype) is bfloat16 for dtype in (data.dtype, wanted))
    if is_bits is wants_bits:
        return values
    if is_bits:
        return bfloat16.decode_array(values)
    return values.astype(np.uint32) if values.dtype == np.uint16 else values


def _dtype_name(dtype: Any) -> str:
    return str(getattr(dtype, "name", dtype))
