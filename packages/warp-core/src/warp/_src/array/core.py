"""What an array is to kernels: memory, layout, gradient and the C descriptor of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from warp._src.array.contents import Contents
from warp._src.array.elements import ElementLayout, contiguous_strides
from warp._src.array.geometry import Geometry, geometry_of
from warp._src.array.memory import (
    Values,
    allocate,
    allocate_strided,
    allocation_of,
    overlaps_itself,
    reach,
    span,
    values_at,
)
from warp._src.recording.ranges import Layout
from warp._src.recording.storage import Storage
from warp._src.runtime.cuda import CudaDevice, PinnedMemory, first_cuda_device
from warp._src.runtime.device import Device
from warp._src.runtime.stream import get_stream
from warp.errors import ArgumentError

if TYPE_CHECKING:
    from warp._src.array.array import array

FLAG_READONLY: Final = 1
_ADDRESSES: Final = struct.Struct("=QQ")
_LAYOUT: Final = struct.Struct("=4q4q4qii")
DESCRIPTOR_SIZE: Final = _ADDRESSES.size + _LAYOUT.size


class TensorLink(Protocol):
    """A foreign tensor of the same memory as an array."""

    def gradient(self) -> object:
        """Return the gradient that the tensor has now, or None if the array has its own."""

    def wrap(self, gradient: Any) -> array:
        """Return the tensor's gradient as an array."""

    def source_of(self, gradient: array) -> object:
        """Return the tensor's gradient if that is what was assigned as the array's; else share gradients no more."""

    def note_write(self) -> None:
        """Tell the tensor's framework that its memory is written."""

    def watch(self, target: array) -> None:
        """Note from now on what the framework writes to an array that is on a tape."""

    def note_foreign_writes(self) -> None:
        """Note what the framework wrote to the tensor since that was asked last."""


@lru_cache(maxsize=1024)
def _packed_layout(
    shape: tuple[int, ...], strides: tuple[int, ...], grad_strides: tuple[int, ...], is_readonly: bool
) -> bytes:
    """Return what follows the addresses in the C descriptor."""
    ndim = len(shape)
    padding = (0,) * (4 - ndim)
    grad_strides = grad_strides + (0,) * (4 - len(grad_strides))
    flags = FLAG_READONLY if is_readonly else 0
    return _LAYOUT.pack(*shape, *(1,) * (4 - ndim), *strides, *padding, *grad_strides, ndim, flags)


class ArrayCore:
    """Elements of one type in memory, and their gradient."""

    __slots__ = (
        "__weakref__",
        "_derive",
        "_descriptor",
        "_grad",
        "_grad_source",
        "_packed_grad",
        "_parent",
        "_pending",
        "_requires_grad",
        "_retain_grad",
        "_values",
        "bounds",
        "device",
        "dtype",
        "element",
        "is_contiguous",
        "is_differentiable",
        "is_gradient",
        "is_read",
        "is_written",
        "link",
        "ndim",
        "owner",
        "pinned",
        "ptr",
        "shape",
        "size",
        "storage",
        "strides",
    )

    _derive: Callable[[array], array] | None
    _descriptor: bytes | None
    _grad: array | None
    _grad_source: object
    _packed_grad: array | None
    _parent: array | None
    _pending: tuple[object, bool] | None
    """For memory at an address, of which NumPy's view is made when it is needed: the owner, and whether read-only."""
    _requires_grad: bool | None
    _retain_grad: bool | None
    _values: Values
    dtype: Any
    """Type of the elements."""
    element: ElementLayout
    shape: tuple[int, ...]
    ndim: int
    strides: tuple[int, ...]
    """Bytes from one element to the next, per dimension."""
    size: int
    """Number of elements."""
    ptr: int
    """Address of the first element."""
    device: Device
    pinned: bool
    link: TensorLink | None
    """The foreign tensor that the array shares its memory or gradient with."""
    is_contiguous: bool
    is_differentiable: bool
    """Whether the elements are floating-point numbers, or may hold some."""
    is_gradient: bool
    """Whether it was made to be a gradient, and not assigned as one by somebody who has it too."""
    owner: object
    """What keeps the memory alive besides the array itself."""
    bounds: tuple[int, int]
    """Addresses of the first byte and past the last one."""
    storage: Storage | None
    """Set by the recording layer when the memory is first written."""
    is_read: bool
    """Whether `mark_read` was called."""
    is_written: bool
    """Whether `mark_write` was called."""

    @classmethod
    def wrap(
        cls,
        values: Values,
        element: ElementLayout,
        device: Device,
        requires_grad: bool = False,
        address: int | None = None,
    ) -> array:
        """Make an array of a NumPy array that has the element's type and trailing dimensions.

        `address`, that of the first element, saves asking NumPy for it.
        """
        made = cast("array", object.__new__(cls))
        fill_slots(made, values, element, device, address)
        made._requires_grad = requires_grad
        return made

    @classmethod
    def at(
        cls,
        address: int,
        geometry: Geometry,
        element: ElementLayout,
        device: Device,
        owner: object,
        readonly: bool,
    ) -> array:
        """Make an array of memory at an address, which keeps `owner` alive."""
        made = cast("array", object.__new__(cls))
        fill_slots_at(made, address, geometry, element, device)
        made.owner = owner
        made._pending = (owner, readonly)
        made._requires_grad = False
        return made

    @classmethod
    def new(
        cls,
        shape: tuple[int, ...],
        element: ElementLayout,
        device: Device,
        zeroed: bool,
        strides: tuple[int, ...] | None = None,
        pinned: bool = False,
    ) -> array:
        """Make an array of new memory, without gaps or with the given byte strides.

        `pinned` memory is that of the host at a place that CUDA devices copy from and to without waiting; it is
        ordinary memory as long as no CUDA device was asked for.
        """
        if not isinstance(device, CudaDevice):
            cuda = first_cuda_device() if pinned else None
            if cuda is not None and 0 not in shape:
                return cls._new_pinned(cuda, shape, element, device, zeroed, strides)
            if strides is None:
                made = cls.wrap(allocate(shape, element, zeroed), element, device)
            else:
                made = cls.wrap(allocate_strided(shape, strides, element), element, device)
            made.pinned = pinned
            return made
        size = span(shape, contiguous_strides(shape, element.size) if strides is None else strides, element.size)
        if not size:
            return cls.at(0, geometry_of(shape, strides, element.size), element, device, None, False)
        stream = get_stream(device)
        memory = device.allocate(size, stream)
        if zeroed or strides is not None:
            with device.active():
                device.driver.fill_bytes(memory.address, 0, size, stream.handle)
        return cls.at(memory.address, geometry_of(shape, strides, element.size), element, device, memory, False)

    @classmethod
    def _new_pinned(
        cls,
        cuda: CudaDevice,
        shape: tuple[int, ...],
        element: ElementLayout,
        device: Device,
        zeroed: bool,
        strides: tuple[int, ...] | None,
    ) -> array:
        steps = contiguous_strides(shape, element.size) if strides is None else strides
        memory = PinnedMemory(cuda, span(shape, steps, element.size))
        made = cls.at(memory.address, geometry_of(shape, strides, element.size), element, device, memory, False)
        made.pinned = True
        if zeroed or strides is not None:
            memory.clear()
        return made

    if not TYPE_CHECKING:  # a type checker would take every attribute to exist

        def __getattr__(self, name: str) -> Any:
            if name != "_values":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            owner, readonly = self._pending
            element = self.element
            shape, strides = self.shape + element.shape, self.strides + element.strides
            self._values = values = values_at(self.ptr, shape, strides, element.scalar, owner, readonly)
            return values

    @property
    def requires_grad(self) -> bool:
        """Say whether there is a gradient; a view follows the array it was made from until it is set."""
        if self._requires_grad is None:
            return self._parent.requires_grad if self._parent is not None else False
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._requires_grad = bool(value)
        self._descriptor = None
        if not value:
            self._grad = self._grad_source = self._packed_grad = None

    @property
    def retain_grad(self) -> bool:
        """Say whether a tape leaves the gradient in place although it is of an intermediate result."""
        if self._retain_grad is None:
            return self._parent.retain_grad if self._parent is not None else False
        return self._retain_grad

    @retain_grad.setter
    def retain_grad(self, value: bool) -> None:
        self._retain_grad = bool(value)

    @property
    def grad(self) -> array | None:
        """Return the gradient: an array of the same type and shape, zero at first; None without requires_grad.

        Assigning an array shares it as the gradient and sets `requires_grad`; assigning None clears both. One that
        cannot be written, or whose elements share memory, is copied, since gradients are added to.
        """
        if not self.requires_grad:
            return None
        grad = self._grad
        parent = self._parent
        if self.link is not None:
            shared = self.link.gradient()
            if shared is not None and shared is not self._grad_source:
                grad = self.link.wrap(shared)
                grad.is_gradient = True
                self._set_grad(grad, shared)
        if self._derive is not None and parent is not None and parent.requires_grad:
            source = parent.grad
            if source is not None and (
                grad is None or (self._grad_source is not None and self._grad_source is not source)
            ):
                grad = self._derive(source)
                self._set_grad(grad, source)
        if grad is None:
            grad = self.new(self.shape, self.element, self.device, True)
            grad.is_gradient = True
            self._set_grad(grad, None)
        return grad

    @grad.setter
    def grad(self, value: array | None) -> None:
        if value is None:
            self.requires_grad = False
            return
        if not isinstance(value, ArrayCore):
            raise ArgumentError(f"grad must be a warp.array, got {type(value).__qualname__}")
        if value.dtype is not self.dtype or value.shape != self.shape:
            raise ArgumentError(
                f"grad: expected {self!r}, got {value!r}; a gradient has the type and shape of its array"
            )
        if value.device is not self.device:
            raise ArgumentError(f"grad is on device {value.device}, its array on {self.device}")
        if value.is_readonly or value.overlaps_itself():
            value = value.contents.copy()
        self._requires_grad = True
        self._set_grad(value, None if self.link is None else self.link.source_of(value))

    @property
    def has_given_grad(self) -> bool:
        """Say whether the gradient was assigned, and is not one that was made for this array or its tensor."""
        grad = self.grad
        return grad is not None and self._grad_source is None and not grad.is_gradient

    def _set_grad(self, grad: array, source: object) -> None:
        self._grad = grad
        self._grad_source = source
        self._descriptor = None

    def alias(self) -> array:
        """Return another array of the same memory, which it keeps alive, without the gradient."""
        geometry = geometry_of(self.shape, self.strides, self.element.size)
        return self.at(self.ptr, geometry, self.element, self.device, self, self.is_readonly)

    @property
    def contents(self) -> Contents:
        """Return access to the values, wherever they are, without a trace on tapes."""
        return Contents(cast("array", self))

    @property
    def capacity(self) -> int:
        """Return the bytes from the first element to the end of the last one."""
        low, high = self.bounds
        return high - low

    @property
    def base(self) -> array | None:
        """Return the array that this one is a view of, or None."""
        return self._parent

    def overlaps_itself(self) -> bool:
        """Say whether elements share memory."""
        return not self.is_contiguous and overlaps_itself(self.shape, self.strides, self.element.size)

    @property
    def is_readonly(self) -> bool:
        """Say whether the memory must not be written."""
        return not self._values.flags.writeable if self._pending is None else self._pending[1]

    def descriptor(self) -> bytes:
        """Return the C descriptor (`wp_array` of native/abi.h, 120 bytes); the same object while the gradient is."""
        if self.link is None and self._parent is None:
            if self._descriptor is not None:
                return self._descriptor
        else:
            self.note_foreign_writes()
        grad = None if self._requires_grad is False else self.grad
        if self._descriptor is not None and grad is self._packed_grad:
            return self._descriptor
        self._packed_grad = grad
        address, grad_strides = (0, ()) if grad is None else (grad.ptr, grad.strides)
        packed = _ADDRESSES.pack(self.ptr, address) + _packed_layout(
            self.shape, self.strides, grad_strides, self.is_readonly
        )
        self._descriptor = packed
        return packed

    @classmethod
    def described(cls, descriptor: bytes, element: ElementLayout, device: Device, owner: object) -> array:
        """Make an array of what a C descriptor says, which keeps `owner` alive."""
        pointer, gradient = _ADDRESSES.unpack_from(descriptor)
        *numbers, ndim, flags = _LAYOUT.unpack_from(descriptor, _ADDRESSES.size)
        shape, strides, grad_strides = (tuple(numbers[at : at + ndim]) for at in (0, 4, 8))
        geometry = geometry_of(shape, strides, element.size)
        made = cls.at(pointer, geometry, element, device, owner, bool(flags & FLAG_READONLY))
        if gradient:
            made.grad = cls.at(gradient, geometry_of(shape, grad_strides, element.size), element, device, owner, False)
        return made

    def note_write(self) -> None:
        """Tell the framework that shares the memory, if there is one, that the memory was written."""
        link = self.link if self._parent is None else self.root().link
        if link is not None:
            link.note_write()

    def watch(self) -> None:
        """Note from now on what a framework that shares the memory writes, if it tells."""
        link = self.link if self._parent is None else self.root().link
        if link is not None:
            link.watch(self.root())

    def note_foreign_writes(self) -> None:
        """Note what a framework that shares the memory wrote since that was asked last."""
        link = self.link if self._parent is None else self.root().link
        if link is not None:
            link.note_foreign_writes()

    def allocation(self) -> tuple[int, int]:
        """Return the addresses of the block of memory that the array lies in."""
        return allocation_of(self._values) if self._pending is None else self.bounds

    def layout(self) -> Layout:
        """Return address, shape, byte strides and element size: equal for two views of the same elements.

        Axes that run backwards are turned around.
        """
        pointer, strides = self.ptr, self.strides
        if strides and min(strides) < 0:
            backwards = [(size - 1) * stride for size, stride in zip(self.shape, strides, strict=True) if stride < 0]
            pointer, strides = pointer + sum(backwards), tuple(map(abs, strides))
        return Layout(pointer, self.shape, strides, self.element.size)

    def root(self) -> array:
        """Return the array at the end of the chain of views."""
        found = cast("array", self)
        while found._parent is not None:
            found = found._parent
        return found


def fill_slots(
    made: ArrayCore, values: Values, element: ElementLayout, device: Device, address: int | None = None
) -> None:
    """Describe the memory of a new array that has no gradient and is no view yet."""
    inner = len(element.shape)
    shape, strides = values.shape, values.strides
    if inner:
        shape, strides = shape[:-inner], strides[:-inner]
    made._values = values
    made.element = element
    made.dtype = element.dtype
    made.is_differentiable = element.is_differentiable
    made.shape = shape
    made.ndim = len(shape)
    made.device = device
    made.ptr = pointer = values.__array_interface__["data"][0] if address is None else address
    made.owner = made.storage = made._grad = made._grad_source = made.link = None
    made._parent = made._derive = made._descriptor = made._packed_grad = made._pending = None
    made.pinned = made.is_gradient = made.is_read = made.is_written = made._retain_grad = False
    if values.flags.c_contiguous:
        made.strides = strides if values.size else contiguous_strides(shape, element.size)
        made.is_contiguous = True
        made.bounds = (pointer, pointer + values.nbytes)
        made.size = values.nbytes // element.size
    else:
        made.strides = strides
        made.is_contiguous = False
        low, high = reach(shape, strides, element.size)
        made.bounds = (pointer + low, pointer + high)
        made.size = math.prod(shape)


def fill_slots_at(made: ArrayCore, address: int, geometry: Geometry, element: ElementLayout, device: Device) -> None:
    """Describe memory at an address, as `fill_slots` does for what NumPy sees."""
    made.element = element
    made.dtype = element.dtype
    made.is_differentiable = element.is_differentiable
    made.shape, made.strides, made.size, made.is_contiguous, low, high = geometry
    made.ndim = len(made.shape)
    made.device = device
    made.ptr = address
    made.bounds = (address + low, address + high)
    made.storage = made._grad = made._grad_source = made.link = None
    made._parent = made._derive = made._descriptor = made._packed_grad = None
    made.pinned = made.is_gradient = made.is_read = made.is_written = made._retain_grad = False
