"""The stand-in of the driver as native code sees it: C functions that return a status."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

from tests.cuda import fake_errors as errors

from warp._src.runtime.driver import Driver, driver_error
from warp.errors import DeviceError

_CODE = re.compile(r"\((\d+)\)")
_UNKNOWN = 999
_LAUNCH_SIZE = 80
_pointer, _size, _unsigned = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint
_out = ctypes.POINTER(ctypes.c_void_p)


class Functions:
    """Addresses of C functions that do what the methods of a driver do."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.parameter_sizes: dict[int, int] = {}
        """Bytes of the arguments of kernels, which the caller of a launch does not tell."""
        self.calls: list[str] = []
        """The names of the functions that were called."""
        self.refusals: dict[str, int] = {}
        """Codes that functions are to return the next time, by name."""
        self._made: dict[str, Any] = {}

    def address(self, name: str) -> int:
        """Return the address of a function by the name that the driver gives it."""
        if name not in self._made:
            run, *types = self._table()[name]
            self._made[name] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._with_status(name, run))
        return ctypes.cast(self._made[name], ctypes.c_void_p).value or 0

    def _with_status(self, name: str, run: Callable[..., None]) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name in self.refusals:
                return self.refusals.pop(name)
            try:
                run(*arguments)
            except DeviceError as error:
                found = _CODE.search(str(error))
                return int(found.group(1)) if found else _UNKNOWN
            return 0

        return call

    def _table(self) -> dict[str, tuple[Any, ...]]:
        driver = self._driver
        return {
            "cuLaunchKernel": (self._launch, _pointer, *[_unsigned] * 7, _pointer, _out, _pointer),
            "cuMemsetD8Async": (
                lambda target, value, size, stream: driver.fill_bytes(target, value, size, stream or 0),
                _pointer,
                ctypes.c_ubyte,
                _size,
                _pointer,
            ),
            "cuMemcpyAsync": (
                lambda target, source, size, stream: driver.copy(target, source, size, stream or 0),
                _pointer,
                _pointer,
                _size,
                _pointer,
            ),
            "cuMemAllocAsync": (self._allocate, _out, _size, _pointer),
            "cuMemFreeAsync": (lambda memory, stream: driver.free_async(memory, stream or 0), _pointer, _pointer),
            "cuStreamSynchronize": (lambda stream: driver.synchronize_stream(stream or 0), _pointer),
            "cuCtxGetCurrent": (self._current_context, _out),
            "cuCtxSetCurrent": (lambda context: driver.set_context(context or 0), _pointer),
        }

    def _launch(self, kernel: int, *arguments: Any) -> None:
        grid, *others, block, by, bz, shared = arguments[:7]
        stream, parameters, extra = arguments[7:]
        assert (*others, by, bz, shared, extra) == (1, 1, 1, 1, 0, None), "one dimension, no shared memory"
        sizes = (_LAUNCH_SIZE, self.parameter_sizes[kernel])
        values = tuple(ctypes.string_at(parameters[n], size) for n, size in enumerate(sizes))
        self._driver.launch(kernel, grid, block, stream or 0, values)

    def _allocate(self, found: Any, size: int, stream: int | None) -> None:
        found[0] = self._driver.allocate_async(size, stream or 0)

    def _current_context(self, found: Any) -> None:
        found[0] = self._driver.current_context()


class WithFunctions:
    """The part of a driver that is for native code."""

    functions: Functions

    def function(self, name: str) -> int:
        return self.functions.address(name)

    def explain(self, name: str, code: int) -> str:
        return str(driver_error(name, code, errors.name_of(code), "reported by the stand-in"))
