"""The conversion functions that follow from a bridge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from warp._src.array.array import array
from warp._src.array.deferred import ArrayDescriptor
from warp._src.array.elements import ElementLayout, element_layout
from warp._src.interop.elements import array_at, element_for
from warp._src.interop.link import Link
from warp._src.runtime.device import Device, get_device
from warp._src.runtime.stream import Stream, get_stream
from warp._src.types.scalars import is_scalar
from warp.errors import ArgumentError, DeviceError
from warp.plugins import Bridge, Streams, TensorMemory

_CACHE_SIZE: Final = 256


class BridgeFunctions:
    """Conversions between Warp and one framework, in both directions."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._name = bridge.name
        self._read = bridge.read
        self._types = bridge.tensor_types
        self._tells_writes = bridge.on_write is not None or bridge.version is not None
        self._from_name = f"from_{bridge.name}"
        self._to: dict[type, Any] = {}
        for foreign, scalar in bridge.dtypes_from.items():
            self._to.setdefault(scalar, foreign)
        self._to.update(bridge.dtypes_to)
        self._element = lru_cache(_CACHE_SIZE)(self._find_element)
        self._device = lru_cache(_CACHE_SIZE)(self._find_device)

    # ------------------------------------------------------------------ arrays

    def from_tensor(
        self,
        t: Any,
        dtype: Any = None,
        requires_grad: bool | None = None,
        grad: Any = None,
        return_ctype: bool = False,
    ) -> Any:
        """Return a tensor as an array of the same memory, which the array keeps alive.

        Args:
            t: The tensor.
            dtype: Type of the elements; vectors and matrices take trailing dimensions. By default the tensor's.
            requires_grad: Whether the array has a gradient, by default whether the tensor has. It is the tensor's
                own, made if there is none, where the framework allows to attach it; else the array's.
            grad: A tensor or an array that becomes the array's gradient instead.
            return_ctype: Return what only a launch takes, which is cheaper to make.

        Raises:
            ArgumentError: `t` is no tensor, its type has no counterpart, or its memory cannot be seen as `dtype`.
            DeviceError: The tensor is on a device that Warp does not have.
        """
        if not isinstance(t, self._types):
            raise ArgumentError(f"{self._from_name}: t must be a tensor of {self._name}, got {type(t).__qualname__}")
        memory = self._read(t)
        if return_ctype:
            return ArrayDescriptor(self._wrap, (t, memory, dtype, requires_grad, grad))
        return self._wrap(t, memory, dtype, requires_grad, grad)

    def to_tensor(self, a: Any, requires_grad: bool | None = None) -> Any:
        """Return an array as a tensor of the same memory, which the tensor keeps alive.

        Vectors and matrices add trailing dimensions. `requires_grad`, by default the array's, tells whether the tensor
        has the array's gradient, or one of its own if the array has none.
        """
        if not isinstance(a, array):
            raise ArgumentError(f"to_{self._name}: a must be a warp.array, got {type(a).__qualname__}")
        dtype = self._to_dtype(getattr(a.dtype, "scalar", a.dtype))
        tensor = self._bridge.make(a, dtype)
        gradients = self._bridge.gradients
        if gradients is None or not (a.requires_grad if requires_grad is None else requires_grad):
            self._link(a, tensor, False)
            return tensor
        gradient = a.grad
        if gradient is None:
            gradients.attach(tensor, gradients.new(tensor))
            return tensor
        gradients.attach(tensor, self._bridge.make(gradient, dtype))
        link = self._link(a, tensor, True)
        if link is not None:
            link.adopt(gradient, gradients.get(tensor))
            a.grad = gradient
        return tensor

    def _link(self, a: array, tensor: Any, shares_gradient: bool) -> Link | None:
        """Link an array with a tensor made of it, unless it has its memory or its gradient from elsewhere."""
        is_needed = shares_gradient or self._tells_writes
        if not is_needed or a.base is not None or (isinstance(a.link, Link) and a.link.covers(shares_gradient)):
            return None
        a.link = link = Link(self._bridge, tensor, self.from_tensor, a.dtype, shares_gradient)
        if a.storage is not None:
            link.watch(a)
        return link

    def _wrap(self, t: Any, memory: TensorMemory, dtype: Any, requires_grad: bool | None, grad: Any) -> array:
        pointer, shape, strides, foreign, place, is_writable, owner = memory
        try:
            element, device = self._element(foreign, dtype), self._device(place)
        except TypeError as error:
            if isinstance(error, ArgumentError):
                raise
            # The framework's objects need not be hashable.
            element, device = self._find_element(foreign, dtype), self._find_device(place)
        if owner is None:
            owner = t
        made = array_at(self._from_name, element, device, pointer, shape, strides, owner, not is_writable)
        gradients = self._bridge.gradients
        if requires_grad is None:
            requires_grad = gradients is not None and gradients.is_required(t)
        shares_gradient = False
        if requires_grad or grad is not None:
            made.requires_grad = True
            shares_gradient = grad is None and gradients is not None and gradients.is_attachable(t)
        if shares_gradient or self._tells_writes:
            made.link = Link(self._bridge, t, self.from_tensor, element.dtype, shares_gradient)
            if shares_gradient:
                made.link.gradient()
        if grad is not None:
            made.grad = grad if isinstance(grad, array) else self.from_tensor(grad, element.dtype, requires_grad=False)
        return made

    def _find_element(self, foreign: Any, dtype: Any) -> ElementLayout:
        natural = element_layout(self.from_dtype(foreign))
        return natural if dtype is None else element_for(self._from_name, dtype, natural.scalar, foreign)

    # ------------------------------------------------------------------ types

    def from_dtype(self, dtype: Any) -> type:
        """Return the Warp scalar type of one of the framework's data types. ArgumentError, a TypeError, if none."""
        if not self._has(dtype):
            raise ArgumentError(f"dtype_from_{self._name}: {dtype!r} has no counterpart in Warp")
        return self._bridge.dtypes_from[dtype]

    def to_dtype(self, dtype: Any) -> Any:
        """Return the framework's data type of a Warp scalar type. ArgumentError, a TypeError, if there is none."""
        return self._to_dtype(element_layout(dtype).dtype if not is_scalar(dtype) else dtype)

    def _to_dtype(self, scalar: Any) -> Any:
        found = self._to.get(scalar)
        if found is None:
            kind = getattr(scalar, "name", scalar)
            raise ArgumentError(f"dtype_to_{self._name}: {kind} has no counterpart in {self._name}")
        return found

    def _has(self, dtype: Any) -> bool:
        try:
            return dtype in self._bridge.dtypes_from
        except TypeError:
            return False

    # ------------------------------------------------------------------ devices

    def from_device(self, device: Any) -> Device:
        """Return the Warp device of one of the framework's devices. DeviceError, a RuntimeError, if there is none."""
        return self._find_device(device)

    def to_device(self, device: Any = None) -> Any:
        """Return the framework's device of a Warp device. DeviceError, a RuntimeError, if there is none."""
        place = get_device(device)
        found = self._bridge.device_to(place.alias)
        if found is None:
            raise DeviceError(f"device_to_{self._name}: {self._name} has no counterpart of device '{place}'")
        return found

    def _find_device(self, device: Any) -> Device:
        alias = self._bridge.device_from(device)
        if alias is None:
            raise DeviceError(f"device_from_{self._name}: Warp has no counterpart of {device!r}")
        return get_device(alias)

    # ------------------------------------------------------------------ streams

    def from_stream(self, stream_or_device: Any = None) -> Stream:
        """Return a stream of the framework, or the current one of a device, as a Warp stream.

        DeviceError if the device has no streams, as the CPU.
        """
        streams = self._streams(f"stream_from_{self._name}")
        if isinstance(stream_or_device, streams.types):
            stream, device = stream_or_device, self._find_device(streams.device(stream_or_device))
        else:
            device = self._streaming_device(f"stream_from_{self._name}", stream_or_device)
            stream = streams.current(self.to_device(device))
        return Stream(device, cuda_stream=streams.handle(stream))

    def to_stream(self, stream_or_device: Any = None) -> Any:
        """Return a Warp stream, or the current one of a device, as a stream of the framework.

        DeviceError if the device has no streams, as the CPU.
        """
        function = f"stream_to_{self._name}"
        streams = self._streams(function)
        stream = stream_or_device if isinstance(stream_or_device, Stream) else None
        device = self._streaming_device(function, stream_or_device if stream is None else stream.device)
        stream = get_stream(device) if stream is None else stream
        return streams.make(stream.cuda_stream or 0, self.to_device(device))

    def _streams(self, function: str) -> Streams:
        if self._bridge.streams is None:
            raise DeviceError(f"{function}: {self._name} has no streams")
        return self._bridge.streams

    def _streaming_device(self, function: str, device: Any) -> Device:
        is_foreign = isinstance(device, self._bridge.device_types)
        place = self._find_device(device) if is_foreign else get_device(device)
        if not place.is_cuda:
            raise DeviceError(f"{function}: device '{place}' has no streams")
        return place


_derived: Final[dict[Bridge, Mapping[str, Callable[..., Any]]]] = {}


def derive(bridge: Bridge) -> Mapping[str, Callable[..., Any]]:
    """Return the conversion functions of a bridge by their public names, the same ones every time."""
    if bridge not in _derived:
        functions = BridgeFunctions(bridge)
        by_pattern: dict[str, Callable[..., Any]] = {
            "from_{0}": functions.from_tensor,
            "to_{0}": functions.to_tensor,
            "dtype_from_{0}": functions.from_dtype,
            "dtype_to_{0}": functions.to_dtype,
            "device_from_{0}": functions.from_device,
            "device_to_{0}": functions.to_device,
            "stream_from_{0}": functions.from_stream,
            "stream_to_{0}": functions.to_stream,
        }
        _derived[bridge] = {pattern.format(bridge.name): function for pattern, function in by_pattern.items()}
    return _derived[bridge]
