"""The contents of arrays, wherever they are: copied, replaced, cleared and added, without a trace on tapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from warp._src.array.elements import ElementLayout, element_layout, numpy_element
from warp._src.array.memory import Values, address_of, values_at
from warp._src.runtime import transfers
from warp._src.runtime.cuda import CudaDevice, DeviceMemory
from warp._src.runtime.device import get_device
from warp._src.runtime.stream import Stream, get_stream
from warp._src.types.scalars import bfloat16, uint8
from warp._src.types.signature import is_array, is_differentiable, scalar_of
from warp._src.types.struct_type import StructType
from warp.errors import ArgumentError, DeviceError

if TYPE_CHECKING:
    from warp._src.array.array import array

_BYTE: Final = element_layout(uint8)


class Contents:
    """What an array holds, on the host or on a device, for those who keep, compare and put back values."""

    __slots__ = ("_array",)

    def __init__(self, of: array) -> None:
        self._array = of

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return NumPy's type of the scalars in an element."""
        return self._array.element.scalar

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape with the dimensions that elements add."""
        return self._array.shape + self._array.element.shape

    def copy(self) -> array:
        """Return an array without gaps and without gradient that holds the same, on the same device."""
        return duplicate(self._array)

    def replace(self, values: array | Values) -> None:
        """Take the values of an array or NumPy array of the same shape and type."""
        replace(self._array, values)

    def clear(self) -> None:
        """Set every component to zero."""
        clear_part(Part(self._array))

    def add(self, values: array) -> None:
        """Add the floating-point components of an array of the same shape, type and device."""
        add_part(Part(self._array), Part(values))

    def filled(self, value: float) -> array:
        """Return an array of the same shape and type on the same device, with every number set to a value."""
        element = self._array.element
        made = self._array.new(self._array.shape, element, self._array.device, False)
        is_struct = self.dtype.names is not None
        fill_part(Part(made), np.full((), value, self.dtype) if is_struct else numpy_element(element, value, "value"))
        return made

    def may_be_nonzero(self) -> bool:
        """Say whether a component could be other than zero; on a device nobody waits to find out."""
        values = self._array._values
        return self._array.device.is_cuda or values.dtype.names is not None or bool(values.any())

    def bytes_between(self, low: int, high: int) -> array:
        """Return the memory at the addresses [low, high) as an array of bytes, which keeps the array alive."""
        whole = self._array
        values = values_at(low, (high - low,), None, _BYTE.scalar, whole, whole.is_readonly)
        seen = whole.wrap(values, _BYTE, whole.device, address=low)
        seen.owner = whole.owner if whole.device.is_cuda else whole
        return seen


class Part(NamedTuple):
    """All elements of an array, or `length` of them in row-major order, from number `first` on."""

    array: array
    first: int = 0
    length: int | None = None

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return self.array.size if self.length is None else self.length

    def read(self) -> Values:
        """Return the elements of an array on the host; a copy of them if they are not all."""
        values = self.array._values
        return values if self.length is None else values[self._positions()]

    def write(self, new: Any) -> None:
        """Replace the elements of an array on the host."""
        self.array._values[... if self.length is None else self._positions()] = new

    def key(self) -> tuple[Any, ...]:
        """Return what two equal parts have in common."""
        return (self.array.layout(), self.first, self.length)

    def of(self, other: Any) -> Part:
        """Return the same part of another array of the same shape."""
        return self._replace(array=other)

    def _positions(self) -> Any:
        return np.unravel_index(np.arange(self.first, self.first + self.size), self.array.shape)

    def elements(self) -> transfers.Elements:
        """Describe the elements of an array on a device."""
        whole = self.array
        return transfers.Elements(
            whole.ptr, whole.shape, whole.strides, whole.element.size, self.first, self.size, whole.is_contiguous
        )


def use_on(device: CudaDevice, arrays: Iterable[array]) -> Stream:
    """Return the current stream of a device, and keep the memory of arrays until what comes next on it has run."""
    stream = get_stream(device)
    if device.streams_made > 1:
        for used in arrays:
            if used.owner.__class__ is DeviceMemory:
                used.owner.note_use(stream)
    if device.captures and (capture := device.capture_of(stream.handle)) is not None:
        for used in arrays:
            capture.keep(used)
    return stream


# ---------------------------------------------------------------------- between host and device


def to_host(source: array) -> Values:
    """Return the contents of an array on a device as a new NumPy array, once they are there."""
    device = source.device
    assert isinstance(device, CudaDevice)
    made: Values = np.empty(source.shape + source.element.shape, source.element.scalar)
    if source.size:
        packed = source if source.is_contiguous else duplicate(source)
        stream = use_on(device, (packed,))
        _refuse_in_capture(stream, "read")
        with device.active():
            device.driver.copy(address_of(made), packed.ptr, made.nbytes, stream.handle)
        stream.synchronize()
    return made


def from_host(target: array, values: Values) -> None:
    """Give an array on a device the contents of a NumPy array of its shape and type."""
    device = target.device
    assert isinstance(device, CudaDevice)
    if not target.size:
        return
    if not target.is_contiguous:
        packed = target.new(target.shape, target.element, device, False)
        from_host(packed, values)
        copy_part(Part(target), Part(packed))
        return
    source = np.ascontiguousarray(np.broadcast_to(values, target.shape + target.element.shape))
    stream = use_on(device, (target,))
    _refuse_in_capture(stream, "written from the host")
    with device.active():
        device.driver.copy(target.ptr, address_of(source), source.nbytes, stream.handle)
    # The driver may still be reading the host's memory.
    stream.synchronize()


def _refuse_in_capture(stream: Stream, what: str) -> None:
    if stream.is_capturing:
        raise DeviceError(
            f"an array on device '{stream.device}' cannot be {what} while a graph is captured: nothing runs then; "
            "do so before or after, or use pinned arrays"
        )


# ---------------------------------------------------------------------- whole arrays


def duplicate(source: array) -> array:
    """Return a copy without gaps and without gradient, on the same device."""
    if not source.device.is_cuda:
        return source.wrap(np.array(source._values, order="C"), source.element, source.device)
    made = source.new(source.shape, source.element, source.device, False)
    copy_part(Part(made), Part(source))
    return made


def duplicate_on_host(source: array) -> array:
    """Return a copy without gaps and without gradient on the CPU."""
    return source.wrap(np.array(source.numpy(), order="C"), source.element, get_device("cpu"))


def moved(like: array, values: Values, element: ElementLayout) -> array:
    """Return an array of values of the host on the device of another; it shares their memory on the CPU."""
    if not like.device.is_cuda:
        return like.wrap(values, element, like.device)
    made = like.new(values.shape[: values.ndim - len(element.shape)], element, like.device, False)
    from_host(made, values)
    return made


def replace(target: array, new: array | Values) -> None:
    """Replace all contents; `new` is an array or NumPy array of the same shape and type, or a NumPy scalar."""
    if isinstance(new, (np.ndarray, np.generic)):
        if target.device.is_cuda:
            from_host(target, np.asarray(new))
        else:
            target._values[...] = new
    else:
        copy_part(Part(target), Part(new))


# ---------------------------------------------------------------------- parts


def copy_part(target: Part, source: Part) -> None:
    """Copy elements between arrays anywhere; the arrays may overlap."""
    there, here = target.array.device, source.array.device
    if not target.size:
        return
    if isinstance(there, CudaDevice) or isinstance(here, CudaDevice):
        _copy_with_device(target, source)
        return
    values = source.read()
    if np.may_share_memory(values, target.array._values):
        values = values.copy()  # NumPy assigns overlapping views of different strides element by element
    target.write(values.reshape(target.read().shape) if target.length is None else values)


def _copy_with_device(target: Part, source: Part) -> None:
    there, here = target.array.device, source.array.device
    if not isinstance(here, CudaDevice):
        _upload(target, source)
    elif not isinstance(there, CudaDevice):
        _download(target, source)
    elif there is here:
        if _share_memory(target.array, source.array):
            source = Part(taken(source))
        use_on(here, (target.array, source.array))
        transfers.copy(here, target.elements(), source.elements())
    else:
        _copy_across(there, here, target, source)


def _share_memory(a: array, b: array) -> bool:
    return a.bounds[0] < b.bounds[1] and b.bounds[0] < a.bounds[1]


def _upload(target: Part, source: Part) -> None:
    device = target.array.device
    assert isinstance(device, CudaDevice)
    if source.array.pinned and source.array.is_contiguous and target.array.is_contiguous:
        _copy_pinned(device, target, source)
        return
    values = np.ascontiguousarray(source.read())
    count = target.size
    if target.length is None and values.shape == target.array._values.shape:
        from_host(target.array, values)
        return
    element = target.array.element
    packed = target.array.new((count,), element, device, False)
    from_host(packed, values.reshape((count, *element.shape)))
    copy_part(target, Part(packed))


def _download(target: Part, source: Part) -> None:
    device = source.array.device
    assert isinstance(device, CudaDevice)
    if target.array.pinned and target.array.is_contiguous and source.array.is_contiguous:
        _copy_pinned(device, target, source)
        return
    values = to_host(taken(source) if source.length is not None else source.array)
    element = target.array.element
    shape = target.array.shape if target.length is None else (target.size,)
    target.write(values.reshape(shape + element.shape))


def _copy_pinned(device: CudaDevice, target: Part, source: Part) -> None:
    stream = use_on(device, (target.array, source.array))
    to, origin = target.elements(), source.elements()
    with device.active():
        device.driver.copy(to.start, origin.start, to.nbytes, stream.handle)


def _copy_across(there: CudaDevice, here: CudaDevice, target: Part, source: Part) -> None:
    """Copy from one device to another, after what came before on both and before what comes next."""
    packed = source if source.array.is_contiguous else Part(taken(source))
    to = (
        target
        if target.array.is_contiguous
        else Part(target.array.new((target.size,), target.array.element, there, False))
    )
    reader, writer = use_on(here, (packed.array,)), use_on(there, (to.array,))
    writer.wait_stream(reader)
    with there.active():
        there.driver.copy(to.elements().start, packed.elements().start, to.elements().nbytes, writer.handle)
    reader.wait_stream(writer)
    if to is not target:
        copy_part(target, to)


def taken(source: Part) -> array:
    """Return the elements as a new array without gaps, on the same device."""
    whole = source.array
    if source.length is None:
        return duplicate(whole)
    made = whole.new((source.length,), whole.element, whole.device, False)
    copy_part(Part(made), source)
    return made


def clear_part(target: Part) -> None:
    """Set every component of some elements to zero."""
    whole = target.array
    if isinstance(whole.device, CudaDevice):
        if target.size:
            use_on(whole.device, (whole,))
            _fill(whole.device, target, bytes(whole.element.size))
    else:
        target.write(np.zeros((), whole._values.dtype))


def fill_part(target: Part, value: Any) -> None:
    """Set some elements to one value, as NumPy assigns it to an element."""
    whole = target.array
    if not isinstance(whole.device, CudaDevice):
        target.write(value)
        return
    if target.size:
        element = whole.element
        pattern = np.array(np.broadcast_to(np.asarray(value, element.scalar), element.shape)).tobytes()
        use_on(whole.device, (whole,))
        _fill(whole.device, target, pattern)


def _fill(device: CudaDevice, target: Part, pattern: bytes) -> None:
    limit = transfers.LARGEST_PATTERN
    if len(pattern) > limit and len(set(pattern)) > 1:
        raise ArgumentError(f"elements of more than {limit} bytes cannot be filled on device '{device}'; copy an array")
    if len(pattern) > limit and not target.array.is_contiguous:
        copy_part(target, Part(target.array.new((target.size,), target.array.element, device, True)))
        return
    transfers.fill(device, target.elements(), pattern)


def add_part(target: Part, source: Part) -> None:
    """Add the floating-point components of elements to those of as many others on the same device."""
    whole = target.array
    if not isinstance(whole.device, CudaDevice):
        values = target.read()
        _add(values, source.read().reshape(values.shape), whole.element.dtype)
        if target.length is not None:
            target.write(values)
        return
    if target.size:
        use_on(whole.device, (whole, source.array))
        for kind, offset, width in float_runs(whole.element.dtype):
            transfers.add(whole.device, target.elements(), source.elements(), kind, offset, width)


def _add(target: Values, values: Values, dtype: Any) -> None:
    if isinstance(dtype, StructType):
        for name, field in dtype.fields.items():
            _add(target[name], values[name], field)
    elif not is_array(dtype) and is_differentiable(dtype):
        with np.errstate(all="ignore"):
            if scalar_of(dtype) is bfloat16:
                target[...] = bfloat16.encode_array(bfloat16.decode_array(target) + bfloat16.decode_array(values))
            else:
                target += values


def float_runs(dtype: Any, offset: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield the runs of floating-point numbers in one element: kind, offset in bytes, and how many."""
    if isinstance(dtype, StructType):
        for name, field in dtype.fields.items():
            yield from float_runs(field, offset + dtype.offsets[name])
        return
    scalar = getattr(dtype, "scalar", dtype)
    name = getattr(scalar, "name", "")
    if name in transfers.KINDS:
        yield name, offset, dtype.size // scalar.size
