"""Memory for what a taped launch keeps for its adjoint."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from warp.errors import AutogradError


class _Record(ctypes.Structure):
    """wp_record of native/abi.h."""

    _fields_ = (
        ("places", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("used", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("missing", ctypes.c_int64),
        ("is_full", ctypes.c_int32),
        ("pad", ctypes.c_int32),
    )


class LaunchRecord:
    """The record of one launch of `size` work items: fixed places, and a stream if there is one.

    `address` goes into the launch block; the memory lives as long as this object.
    """

    __slots__ = ("__weakref__", "_places", "_starts", "_struct", "address")

    def __init__(self, size: int, bytes_per_thread: int, has_stream: bool) -> None:
        self._struct = _Record()
        self._places: Any = np.empty(size * bytes_per_thread, np.uint8) if bytes_per_thread else None
        self._starts: Any = np.zeros(size, np.int64) if has_stream else None
        if self._places is not None:
            self._struct.places = self._places.ctypes.data
        if self._starts is not None:
            self._struct.starts = self._starts.ctypes.data
            weakref.finalize(self, _free_stream, self._struct)
        self.address = ctypes.addressof(self._struct)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        fixed = 0 if self._places is None else self._places.nbytes
        starts = 0 if self._starts is None else self._starts.nbytes
        return int(fixed + starts + self._struct.used)

    def check(self, label: str) -> None:
        """Raise AutogradError if there was too little memory for the stream; says how much was needed."""
        if self._struct.is_full:
            needed = self._struct.used + self._struct.missing
            raise AutogradError(
                f"the launch of '{label}' must keep {needed} bytes for its adjoint, but only {self._struct.used} could "
                "be allocated; launch it in smaller parts, or outside the tape"
            )


def _free_stream(record: _Record) -> None:
    if record.stream:
        _libc_free(record.stream)
        record.stream = None


_libc_free = ctypes.CDLL(None).free
_libc_free.argtypes = [ctypes.c_void_p]
_libc_free.restype = None
