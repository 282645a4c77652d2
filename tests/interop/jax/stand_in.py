"""XLA on stand-in devices: calls of the native handler with frames made by hand, and JAX's CPU in front of it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from unittest import mock

import jax
import numpy as np
from jax.interpreters import mlir
from tests.cuda.fake_driver import FakeDriver
from tests.cuda.hosted import compile_hosted

from warp._src.runtime import cuda
from warp._src.runtime.driver import CudaDriver
from warp_interop_jax import frame as abi
from warp_interop_jax import handler_cuda, primitive
from warp_interop_jax.callback import Buffer, register_callback
from warp_interop_jax.platforms import handler

NAMES = {True: "stand_in_kernel", False: "stand_in_kernel_without_graph"}
SYMBOLS = {True: "wp_jax_call", False: "wp_jax_call_without_graph"}
_NUMBERS = {dtype: number for number, dtype in abi.DTYPES.items()}
_STREAM = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(abi._StreamArguments))
_ORDINAL = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(abi._OrdinalArguments))
_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(abi._ErrorArguments))
_SCALAR, _INT64 = 3, 5


class XlaError(Exception):
    """An error that a handler has returned."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Memory:
    """Arrays in the memory of a stand-in device, queued on a stream."""

    def __init__(self, driver: FakeDriver, ordinal: int, stream: int) -> None:
        self.driver = driver
        self.ordinal = ordinal
        self.stream = stream

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device's context current, as XLA does."""
        previous = self.driver.current_context()
        self.driver.set_context(self.driver.retain_context(self.ordinal))
        yield
        self.driver.set_context(previous)

    def put(self, values: Any) -> int:
        """Copy an array to the device; give its address."""
        source = np.ascontiguousarray(values)
        with self.current():
            address = self.driver.allocate_async(max(source.nbytes, 1), self.stream)
            if source.nbytes:
                self.driver.copy(address, source.ctypes.data, source.nbytes, self.stream)
            self.driver.synchronize_stream(self.stream)
        return address

    def get(self, address: int, shape: Sequence[int], dtype: Any) -> Any:
        """Wait, and copy an array from the device."""
        found = np.empty(shape, dtype)
        with self.current():
            if found.nbytes:
                self.driver.copy(found.ctypes.data, address, found.nbytes, self.stream)
            self.driver.synchronize_stream(self.stream)
        return found

    def free(self, addresses: Sequence[int]) -> None:
        """Free memory after what is queued."""
        with self.current():
            for address in addresses:
                self.driver.free_async(address, self.stream)


class Call:
    """A frame as XLA would make it; buffers are (address, shape, dtype)."""

    def __init__(self, inputs: Sequence[Any], results: Sequence[Any], attributes: dict[str, int]) -> None:
        self.errors: list[tuple[int, str]] = []
        self.interface = abi._Interface(size=ctypes.sizeof(abi._Interface))
        self._kept: list[Any] = []
        self.frame = abi.Frame(
            size=ctypes.sizeof(abi.Frame),
            interface=ctypes.pointer(self.interface),
            stage=abi.EXECUTE,
            inputs=self._buffers(inputs),
            results=self._buffers(results),
            attributes=self._attributes(attributes),
        )
        self._set("create_error", _ERROR(self._create_error))

    def on(self, stream: int, ordinal: int | None) -> Call:
        """Say where the call runs; a runtime that cannot tell the device says None."""

        def give_stream(arguments: Any) -> None:
            arguments.contents.stream = stream

        def give_ordinal(arguments: Any) -> None:
            arguments.contents.ordinal = ordinal

        self._set("stream", _STREAM(give_stream))
        if ordinal is None:
            self.interface.size = abi._Interface.device_ordinal.offset
        else:
            self._set("device_ordinal", _ORDINAL(give_ordinal))
        return self

    def run(self, address: int) -> None:
        """Call a handler. Raises XlaError for what it returns."""
        result = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)(ctypes.addressof(self.frame))
        assert bool(result) == bool(self.errors)
        if self.errors:
            raise XlaError(*self.errors[0])

    def _set(self, name: str, function: Any) -> None:
        self._kept.append(function)
        setattr(self.interface, name, ctypes.cast(function, ctypes.c_void_p))

    def _create_error(self, arguments: Any) -> int:
        found = arguments.contents
        self.errors.append((found.code, found.message.decode()))
        return 0xE  # no address, and nobody looks there

    def _buffers(self, given: Sequence[Any]) -> abi._Buffers:
        items = (ctypes.POINTER(abi._Buffer) * len(given))()
        for number, (address, shape, dtype) in enumerate(given):
            dims = (ctypes.c_int64 * len(shape))(*shape)
            fields = (ctypes.sizeof(abi._Buffer), None, _NUMBERS[np.dtype(dtype)], address, len(shape))
            items[number] = ctypes.pointer(abi._Buffer(*fields, dims))
        return abi._Buffers(size=ctypes.sizeof(abi._Buffers), count=len(given), items=items)

    def _attributes(self, given: dict[str, int]) -> abi._Attributes:
        count = len(given)
        types, values = (ctypes.c_int * count)(*[_SCALAR] * count), (ctypes.c_void_p * count)()
        names = (ctypes.POINTER(abi._Span) * count)()
        for number, (name, value) in enumerate(given.items()):
            text, integer = ctypes.create_string_buffer(name.encode()), ctypes.c_int64(value)
            scalar = abi._Scalar(_INT64, ctypes.addressof(integer))
            names[number] = ctypes.pointer(abi._Span(ctypes.addressof(text), len(name)))
            values[number] = ctypes.addressof(scalar)
            self._kept += [text, integer, scalar]
        return abi._Attributes(
            size=ctypes.sizeof(abi._Attributes), count=count, types=types, names=names, values=values
        )


def metadata_of(address: int) -> tuple[int, int, int]:
    """Ask a handler as XLA does when it is registered: major and minor version, and traits."""
    metadata = abi._Metadata(size=ctypes.sizeof(abi._Metadata))
    base = abi._Extension(ctypes.sizeof(abi._MetadataExtension), abi.METADATA)
    extension = abi._MetadataExtension(base, ctypes.pointer(metadata))
    call = Call((), (), {})
    call.frame.next = ctypes.addressof(extension)
    call.run(address)
    return metadata.version.major, metadata.version.minor, metadata.traits


class StandInXla:
    """The handler on two stand-in devices. JAX's CPU takes the place of XLA on a GPU: it copies there and back."""

    def __init__(self) -> None:
        self.driver = FakeDriver(2)
        self.ordinal = 0
        self.graphs: list[bool] = []
        """Of each call, whether a graph could have captured it."""
        self._proxies: dict[str, int] = {}
        with (
            self.installed(),
            mock.patch.multiple(
                handler_cuda,
                TARGETS=NAMES,
                cuda_devices=lambda: [0, 1],
                device_from=lambda number: f"cuda:{number}",
                register_target=self._register,
            ),
        ):
            self.handler = handler("cuda")

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let Warp use the stand-in."""
        cuda.use_driver(lambda: self.driver, compile_hosted)
        yield
        self.driver.run_all()
        cuda.use_driver(CudaDriver)

    @contextmanager
    def in_front(self) -> Iterator[None]:
        """Let JAX lower calls of kernels for the CPU as for CUDA devices."""
        self._lower("cuda")
        with mock.patch.object(handler_cuda, "TARGETS", NAMES), self.installed():
            yield
        self._lower("cpu")

    def address(self, is_captured: bool = True) -> int:
        """Return the address of the handler."""
        return self.handler.library.address(SYMBOLS[is_captured])

    def _lower(self, platform: str) -> None:
        rule = mlir.lower_fun(partial(primitive._lowered, platform=platform), multiple_results=True)
        mlir.register_lowering(primitive.call_p, rule, platform="cpu")
        jax.clear_caches()
        primitive._compiled.cache_clear()

    def _register(self, name: str, address: int, platform: str) -> None:
        assert platform == "CUDA"
        self._proxies[name] = address
        register_callback(name, partial(self._proxy, name), False)

    def _proxy(self, name: str, inputs: list[Buffer], outputs: list[Buffer], attributes: Any, _context: Any) -> None:
        self.graphs.append(name == NAMES[True])
        memory = Memory(self.driver, self.ordinal, self.driver.make_foreign_stream(self.ordinal))
        known = {buffer.pointer: memory.put(_host(buffer)) for buffer in [*outputs, *inputs]}
        found = [[(known[b.pointer], b.shape, b.dtype) for b in buffers] for buffers in (inputs, outputs)]
        try:
            Call(*found, attributes).on(memory.stream, self.ordinal).run(self._proxies[name])
        finally:
            values = [memory.get(*item) for item in found[1]]
            memory.free(list(known.values()))
        for buffer, value in zip(outputs, values, strict=True):
            _host(buffer)[...] = value


def _host(buffer: Buffer) -> Any:
    size = int(np.prod(buffer.shape)) * buffer.dtype.itemsize
    memory = (ctypes.c_char * size).from_address(buffer.pointer) if size else b""
    return np.frombuffer(memory, buffer.dtype).reshape(buffer.shape)


@cache
def stand_in_xla() -> StandInXla:
    """Return the one of this process: names of handlers cannot be given twice."""
    return StandInXla()
