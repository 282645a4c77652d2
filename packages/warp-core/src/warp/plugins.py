"""The public contract between Warp and its plugins: hook specifications, their markers, and bridges to frameworks.

A plugin is an object with an integer `warp_api_version` and methods marked with `hookimpl`. It is announced through
an entry point of the group `warp.plugins`; the entry point's name is the plugin's name. Warp loads it when one of the
names that only plugins provide is first used, so its module should import nothing but this one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pluggy

from warp.errors import PluginError

__all__ = [
    "API_VERSION",
    "ENTRY_POINT_GROUP",
    "Bridge",
    "Gradients",
    "HookSpecifications",
    "Streams",
    "TensorMemory",
    "derive",
    "hookimpl",
    "hookspec",
    "install_deriver",
]

API_VERSION = 1
"""The version of this contract; a plugin states the one it was written for as `warp_api_version`."""

ENTRY_POINT_GROUP = "warp.plugins"
"""The entry-point group under which plugins are announced."""

hookspec = pluggy.HookspecMarker("warp")
hookimpl = pluggy.HookimplMarker("warp")

Functions = Mapping[str, Callable[..., Any]]
"""Functions by their public names."""


class HookSpecifications:
    """Specify every hook that a plugin may implement; all are optional."""

    @hookspec
    def warp_namespace(self) -> Mapping[str, str]:  # type: ignore[empty-body]  # a specification has no body
        """Map public names to where they live, as `{"Tape": "warp_autograd.tape:Tape"}`.

        `warp.Tape` imports `warp_autograd.tape` when it is first used.
        """

    @hookspec
    def warp_submodules(self) -> Mapping[str, str]:  # type: ignore[empty-body]  # a specification has no body
        """Map submodules of `warp` to the modules they stand for, as `{"autograd": "warp_autograd"}`.

        `warp.autograd` and everything below it are then the very module objects of `warp_autograd`.
        """

    @hookspec
    def warp_bridges(self) -> Mapping[str, str]:  # type: ignore[empty-body]  # a specification has no body
        """Map frameworks to where their `Bridge` lives, as `{"torch": "warp_interop_torch.bridge:BRIDGE"}`.

        The key is the name of the framework's module. For "torch" this contributes `warp.from_torch`, `to_torch`,
        `dtype_from_torch`, `dtype_to_torch`, `device_from_torch`, `device_to_torch`, `stream_from_torch` and
        `stream_to_torch`; a name that `warp_namespace` of the same plugin maps as well is taken from there. Tensors,
        devices, dtypes and streams of the framework are accepted where Warp takes its own. The module that holds the
        bridge may import the framework: it is imported when one of these names is used, or when Warp is given an
        object that it does not know while the framework is loaded.
        """

    @hookspec(firstresult=True)
    def warp_array_adapter(self, array_type: type) -> Callable[[Any], Any] | None:
        """Return a function that wraps an instance of `array_type` as a `warp.array` of the same memory, or None.

        Asked once per type, before the bridges. Must not import the framework: an instance of its type implies that
        it is loaded.
        """

    @hookspec(firstresult=True)
    def warp_device_alias(self, device: object) -> str | None:
        """Return the Warp name ("cpu", "cuda:0") of a foreign device object, or None if it is not known."""

    @hookspec(firstresult=True)
    def warp_dtype_alias(self, dtype: object) -> type | None:
        """Return the Warp scalar type of a foreign data type, or None if it is not known."""

    @hookspec(firstresult=True)
    def warp_stream_alias(self, stream: object) -> int | None:
        """Return the native handle of a foreign stream object, or None if it is not known."""


class TensorMemory(NamedTuple):
    """Where the elements of a foreign tensor are."""

    pointer: int
    """Address of the first element; may be 0 where there is none."""
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """Elements, not bytes, from one to the next in each dimension; None for row-major without gaps."""
    dtype: Any
    """The framework's own data type, a key of `Bridge.dtypes_from`."""
    device: Any
    """The framework's own device, which `Bridge.device_from` takes."""
    is_writable: bool = True
    owner: Any = None
    """What keeps the memory alive; None for the tensor itself."""


@dataclass(frozen=True, eq=False)
class Gradients:
    """How a framework attaches gradients to its tensors."""

    is_required: Callable[[Any], bool]
    """Tell whether a tensor has, or is to have, a gradient."""
    is_attachable: Callable[[Any], bool]
    """Tell whether a gradient may be assigned to a tensor now: it is a leaf, and differentiation is not switched off.

    If not, the array gets a gradient of its own and the tensor is left alone.
    """
    get: Callable[[Any], Any]
    """Return the gradient of a tensor as a tensor, or None. It must be the same object until it is replaced."""
    new: Callable[[Any], Any]
    """Return zeros of the type, shape and device of a tensor."""
    attach: Callable[[Any, Any], None]
    """Make a tensor require a gradient, and make another, of the same shape, that gradient without a copy."""


@dataclass(frozen=True, eq=False)
class Streams:
    """How a framework names its CUDA streams."""

    types: tuple[type, ...]
    current: Callable[[Any], Any]
    """Return the current stream of one of the framework's devices."""
    handle: Callable[[Any], int]
    """Return the native handle of a stream."""
    device: Callable[[Any], Any]
    """Return the framework's device of a stream."""
    make: Callable[[int, Any], Any]
    """Return a stream for a native handle on one of the framework's devices."""


@dataclass(frozen=True, eq=False)
class Bridge:
    """Everything Warp must know about a framework; `derive` makes the eight conversion functions of it.

    The callables may assume what their arguments are called: Warp checks types first, turns a None or a KeyError
    into an error with the framework's name, and lets every other exception pass.
    """

    name: str
    """The framework's module, and the last part of the functions' names."""
    tensor_types: tuple[type, ...]
    dtypes_from: Mapping[Any, type]
    """Warp scalar types by the framework's data types. Several may map to one; the first is the way back."""
    read: Callable[[Any], TensorMemory]
    """Return where a tensor's elements are; raise TypeError or RuntimeError for one that has no such memory."""
    make: Callable[[Any, Any], Any]
    """Return a tensor that shares the memory of a `warp.array` and keeps it alive, as `make(array, dtype)`.

    Vectors and matrices add trailing dimensions. `array.__dlpack__()`, `array.__array_interface__` and
    `array.numpy()` show it so; `framework.from_dlpack(array)` is usually all that is needed. `dtype` is the
    framework's data type wanted, of the same size as the array's scalars.
    """
    device_from: Callable[[Any], str | None]
    """Return Warp's name ("cpu", "cuda:0") of a device, given as the framework's object or as text; None if none."""
    device_to: Callable[[str], Any]
    """Return the framework's device for Warp's name of one; None if there is none."""
    device_types: tuple[type, ...] = ()
    """Types of device objects that Warp should take as a `device` argument."""
    dtypes_to: Mapping[type, Any] = field(default_factory=dict)
    """The framework's data types by Warp scalar types, where that is not the way back of `dtypes_from`."""
    gradients: Gradients | None = None
    streams: Streams | None = None
    on_write: Callable[[Any], None] | None = None
    """Tell the framework that a kernel, a copy or a fill wrote the memory of a tensor."""
    version: Callable[[Any], tuple[Hashable, Hashable] | None] | None = None
    """Return what identifies a tensor's block of memory, and the framework's count of the writes to the tensor.

    The count may be anything that differs after a write. None for a tensor whose writes are not counted. Tapes notice
    by it what the framework wrote between an operation and its adjoint.
    """


_derivers: list[Callable[[Bridge], Functions]] = []


def derive(bridge: Bridge) -> Functions:
    """Return the conversion functions of a bridge by their public names, the same ones every time.

    For a bridge named "torch": `from_torch(t, dtype=None, requires_grad=None, grad=None, return_ctype=False)`,
    `to_torch(a, requires_grad=None)`, `dtype_from_torch(dtype)`, `dtype_to_torch(dtype)`, `device_from_torch(device)`,
    `device_to_torch(device)`, `stream_from_torch(stream_or_device=None)`, `stream_to_torch(stream_or_device=None)`.
    """
    if not _derivers:
        raise PluginError("bridges can be derived when warp has been imported")
    return _derivers[-1](bridge)


def install_deriver(deriver: Callable[[Bridge], Functions]) -> None:
    """Say what `derive` does; called once, by Warp itself."""
    _derivers.append(deriver)
