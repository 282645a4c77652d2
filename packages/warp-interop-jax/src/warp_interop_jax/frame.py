"""What XLA hands to a handler, seen from Python: the part of its FFI's C interface, version 0.1, that is needed."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import jax.numpy as jnp
import numpy as np

_POINTER: Final = ctypes.c_void_p
_INT: Final = ctypes.c_int64
_HEAD: Final = (("size", ctypes.c_size_t), ("next", _POINTER))

METADATA: Final = 1
EXECUTE: Final = 3
INTERFACE_VERSION: Final = (0, 1)
"""What every runtime accepts: a handler that is refused would stop the backend from starting."""
GRAPH_COMPATIBLE: Final = 1


class _Extension(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", _POINTER))


class _Version(ctypes.Structure):
    _fields_ = (*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Metadata(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("version", _Version), ("traits", ctypes.c_uint32))


class _MetadataExtension(ctypes.Structure):
    _fields_ = (("base", _Extension), ("metadata", ctypes.POINTER(_Metadata)))


class _Buffer(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("dtype", ctypes.c_int),
        ("data", _POINTER),
        ("rank", _INT),
        ("dims", ctypes.POINTER(_INT)),
    )


class _Buffers(ctypes.Structure):
    _fields_ = (*_HEAD, ("count", _INT), ("types", _POINTER), ("items", ctypes.POINTER(ctypes.POINTER(_Buffer))))


class _Span(ctypes.Structure):
    _fields_ = (("text", _POINTER), ("length", ctypes.c_size_t))


class _Scalar(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int), ("value", _POINTER))


class _Array(ctypes.Structure):
    _fields_ = (("dtype", ctypes.c_int), ("count", ctypes.c_size_t), ("data", _POINTER))


class _Attributes(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("count", _INT),
        ("types", ctypes.POINTER(ctypes.c_int)),
        ("names", ctypes.POINTER(ctypes.POINTER(_Span))),
        ("values", ctypes.POINTER(_POINTER)),
    )


class _ErrorArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


class _StreamArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("context", _POINTER), ("stream", _POINTER))


class _OrdinalArguments(ctypes.Structure):
    _fields_ = (*_HEAD, ("context", _POINTER), ("ordinal", ctypes.c_int32))


class _Interface(ctypes.Structure):
    _fields_ = (
        *_HEAD,
        ("version", _Version),
        ("internal", _POINTER),
        ("create_error", _POINTER),
        ("error_message", _POINTER),
        ("destroy_error", _POINTER),
        ("register_handler", _POINTER),
        ("stream", _POINTER),
        ("register_type", _POINTER),
        ("execution_context", _POINTER),
        ("set_state", _POINTER),
        ("state", _POINTER),
        ("allocate", _POINTER),
        ("free", _POINTER),
        ("schedule", _POINTER),
        ("thread_count", _POINTER),
        ("create_future", _POINTER),
        ("set_available", _POINTER),
        ("set_error", _POINTER),
        ("run_id", _POINTER),
        ("device_ordinal", _POINTER),
    )


class Frame(ctypes.Structure):
    """One call of a handler."""

    _fields_ = (
        *_HEAD,
        ("interface", ctypes.POINTER(_Interface)),
        ("context", _POINTER),
        ("stage", ctypes.c_int),
        ("inputs", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    )

    def answer_metadata(self, traits: int) -> bool:
        """Answer what XLA asks when a handler is registered; False if it does not ask."""
        address = self.next
        while address:
            extension = _Extension.from_address(address)
            if extension.type == METADATA:
                metadata = _MetadataExtension.from_address(address).metadata.contents
                metadata.version.major, metadata.version.minor = INTERFACE_VERSION
                metadata.traits = traits
                return True
            address = extension.next
        return False

    def error(self, code: int, message: str) -> int:
        """Return the address of an error of XLA's."""
        text = message.encode("utf-8", "replace").replace(b"\0", b"?")
        arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text, code)
        create = ctypes.CFUNCTYPE(_POINTER, _POINTER)(self.interface.contents.create_error)
        return int(create(ctypes.addressof(arguments)) or 0)

    def find_stream(self) -> int | None:
        """Return the handle of the CUDA stream that the call belongs to, None if there is none."""
        arguments = _StreamArguments(ctypes.sizeof(_StreamArguments), None, self.context, None)
        error = ctypes.CFUNCTYPE(_POINTER, _POINTER)(self.interface.contents.stream)(ctypes.addressof(arguments))
        return None if error else arguments.stream

    def find_ordinal(self) -> int:
        """Return the number of the device that the call runs on, 0 where the runtime does not tell."""
        field: Any = _Interface.device_ordinal
        interface = self.interface.contents
        if interface.size < field.offset + field.size or not interface.device_ordinal:
            return 0
        arguments = _OrdinalArguments(ctypes.sizeof(_OrdinalArguments), None, self.context, 0)
        error = ctypes.CFUNCTYPE(_POINTER, _POINTER)(interface.device_ordinal)(ctypes.addressof(arguments))
        return 0 if error else int(arguments.ordinal)


DTYPES: Final[dict[int, Any]] = {
    1: np.dtype(np.bool_),
    2: np.dtype(np.int8),
    3: np.dtype(np.int16),
    4: np.dtype(np.int32),
    5: np.dtype(np.int64),
    6: np.dtype(np.uint8),
    7: np.dtype(np.uint16),
    8: np.dtype(np.uint32),
    9: np.dtype(np.uint64),
    10: np.dtype(np.float16),
    11: np.dtype(np.float32),
    12: np.dtype(np.float64),
    15: np.dtype(np.complex64),
    16: np.dtype(jnp.bfloat16),
    18: np.dtype(np.complex128),
}
"""NumPy's dtypes by XLA's numbers for them."""


def buffers_of(buffers: _Buffers) -> list[tuple[int, tuple[int, ...], Any]]:
    """Return address, shape and dtype of each buffer."""
    found = []
    for number in range(buffers.count):
        buffer = buffers.items[number].contents
        found.append((buffer.data or 0, tuple(buffer.dims[: buffer.rank]), DTYPES[buffer.dtype]))
    return found


def attributes_of(attributes: _Attributes) -> dict[str, Any]:
    """Return attributes by name: numbers, strings, NumPy arrays, and dictionaries of these."""
    return {
        _text(attributes.names[number].contents): _READERS[attributes.types[number]](attributes.values[number])
        for number in range(attributes.count)
    }


def _text(span: _Span) -> str:
    return ctypes.string_at(span.text, span.length).decode() if span.length else ""


def _read_scalar(address: int) -> Any:
    scalar = _Scalar.from_address(address)
    dtype = DTYPES[scalar.dtype]
    return np.frombuffer(ctypes.string_at(scalar.value, dtype.itemsize), dtype)[0].item()


def _read_array(address: int) -> Any:
    array = _Array.from_address(address)
    dtype = DTYPES[array.dtype]
    return np.frombuffer(ctypes.string_at(array.data, array.count * dtype.itemsize) if array.count else b"", dtype)


_READERS: Final[dict[int, Any]] = {
    1: _read_array,
    2: lambda address: attributes_of(_Attributes.from_address(address)),
    3: _read_scalar,
    4: lambda address: _text(_Span.from_address(address)),
}
