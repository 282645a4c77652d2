"""DLPack capsules: making them and taking them apart, through ctypes until the runtime library does it."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from typing import Any, Final, TypeAlias

CPU: Final = 1
CUDA: Final = 2
CUDA_PINNED: Final = 3
LEGACY_STREAM: Final = 1

FLAG_READONLY: Final = 1
FLAG_COPIED: Final = 2

_NAMES: Final = (b"dltensor", b"dltensor_versioned")
_USED_NAMES: Final = (b"used_dltensor", b"used_dltensor_versioned")
_MAJOR: Final = 1

Export = Callable[[object, int, tuple[int, ...], tuple[int, ...], int, int, int, int, int, bool], Any]
ImportedTensor: TypeAlias = tuple[object, int, tuple[int, ...], tuple[int, ...], int, int, int, int, int, int]
Import = Callable[[Any], ImportedTensor]


def export_capsule(
    owner: object,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    item_size: int,
    code: int,
    device_type: int = CPU,
    device_id: int = 0,
    flags: int = 0,
    versioned: bool = False,
) -> Any:
    """Return a capsule for memory that `owner` keeps alive; strides are in bytes.

    Raises BufferError for negative strides, on which consumers abort the process, and for those that no consumer can
    express in elements.
    """
    return _export(owner, address, shape, strides, item_size, code, device_type, device_id, flags, versioned)


def import_capsule(capsule: Any) -> ImportedTensor:
    """Take the tensor out of a capsule, which cannot be used again. Raises BufferError if it was used before.

    Returns what keeps the memory alive, address, shape, strides in elements, whether it has strides (else it is
    row-major without gaps), kind of elements (0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool), bits, device type,
    device number, and flags with the lanes in the upper half.
    """
    return _import(capsule)


def use_native(export: Export, import_: Import) -> None:
    """Make and take capsules with the builtin functions of the runtime library from now on."""
    global _export, _import
    _export, _import = export, import_


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class _ManagedVersioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


# Another handle on the interpreter than ctypes.pythonapi, whose signatures everybody may change.
_api: Final = ctypes.PyDLL("python", handle=ctypes.pythonapi._handle)
_new_capsule: Final = _api.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer_of: Final = _api.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_has_name: Final = _api.PyCapsule_IsValid
_has_name.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_set_name: Final = _api.PyCapsule_SetName
_set_name.argtypes = (ctypes.c_void_p, ctypes.c_char_p)

_exported: Final[dict[int, object]] = {}


@_DELETER  # type: ignore[untyped-decorator]  # ctypes is untyped
def _forget(address: int, exported: dict[int, object] = _exported) -> None:
    exported.pop(address, None)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]  # ctypes is untyped
def _free_unused_capsule(
    capsule: int,
    exported: dict[int, object] = _exported,
    has_name: Any = _has_name,
    pointer_of: Any = _pointer_of,
) -> None:
    # The capsule is being destroyed: its address must not become a Python reference again.
    for name in (b"dltensor", b"dltensor_versioned"):
        if has_name(capsule, name):
            exported.pop(pointer_of(capsule, name), None)


# Capsules and foreign arrays may outlive this module at the end of the process.
for _callback in (_forget, _free_unused_capsule):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))


def _export_with_ctypes(
    owner: object,
    address: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    item_size: int,
    code: int,
    device_type: int,
    device_id: int,
    flags: int,
    versioned: bool,
) -> Any:
    if any(stride < 0 for stride in strides):
        raise BufferError("DLPack: the array has a negative stride; export a copy")
    if any(stride % item_size for stride in strides):
        raise BufferError("DLPack: a stride is no multiple of the element's size; export a copy")
    extents = (ctypes.c_int64 * len(shape))(*shape)
    steps = (ctypes.c_int64 * len(shape))(*(stride // item_size for stride in strides))
    managed = _ManagedVersioned() if versioned else _Managed()
    pointers = (ctypes.cast(array, ctypes.POINTER(ctypes.c_int64)) for array in (extents, steps))
    data_type = _DataType(code, 8 * item_size, 1)
    managed.tensor = _Tensor(address or None, _Device(device_type, device_id), len(shape), data_type, *pointers, 0)
    managed.deleter = _forget
    managed.context = ctypes.addressof(managed)  # without one, Paddle never calls the deleter
    if isinstance(managed, _ManagedVersioned):
        managed.major, managed.flags = _MAJOR, flags
    _exported[ctypes.addressof(managed)] = (managed, extents, steps, owner)
    destructor = ctypes.cast(_free_unused_capsule, ctypes.c_void_p)
    return _new_capsule(ctypes.addressof(managed), _NAMES[versioned], destructor)


class _Keeper:
    """Calls the deleter of an imported tensor at the end of its life."""

    __slots__ = ("__weakref__",)

    def __init__(self, managed: _Managed | _ManagedVersioned) -> None:
        if managed.deleter:
            weakref.finalize(self, managed.deleter, ctypes.addressof(managed)).atexit = False


def _import_with_ctypes(capsule: Any) -> ImportedTensor:
    identity = id(capsule)  # the address of the object, in CPython
    versioned = bool(_has_name(identity, _NAMES[1]))
    if not versioned and not _has_name(identity, _NAMES[0]):
        was_used = any(_has_name(identity, name) for name in _USED_NAMES)
        reason = "the DLPack capsule was used before; each can be used once" if was_used else "not a DLPack capsule"
        raise BufferError(reason)
    address = _pointer_of(identity, _NAMES[versioned])
    managed = (_ManagedVersioned if versioned else _Managed).from_address(address)
    if isinstance(managed, _ManagedVersioned) and managed.major > _MAJOR:
        raise BufferError("the DLPack capsule has a newer major version than 1")
    _set_name(identity, _USED_NAMES[versioned])
    tensor = managed.tensor
    shape = tuple(tensor.shape[: tensor.ndim])
    has_strides = bool(tensor.strides)
    flags = (managed.flags if isinstance(managed, _ManagedVersioned) else 0) | tensor.dtype.lanes << 32
    return (
        _Keeper(managed),
        tensor.data + tensor.byte_offset if tensor.data else 0,
        shape,
        tuple(tensor.strides[: tensor.ndim]) if has_strides else shape,
        has_strides,
        tensor.dtype.code,
        tensor.dtype.bits,
        tensor.device.type,
        tensor.device.id,
        flags,
    )


_export: Export = _export_with_ctypes
_import: Import = _import_with_ctypes
