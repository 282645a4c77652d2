"""`wp.launch` and reusable launches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from warp import config
from warp._src.array.array import array
from warp._src.array.contents import duplicate
from warp._src.launch.bind import as_array, check_writable, seen_as, type_of
from warp._src.launch.event import LaunchEvent, require_shared_gradients, run_backward, signature_of
from warp._src.launch.memory import overlaps
from warp._src.launch.prepared import Prepared
from warp._src.launch.prepared_cuda import CudaPrepared
from warp._src.launch.program import Kernel, Literal, Program, variant_of
from warp._src.launch.program_cuda import CudaProgram
from warp._src.recording.recorder import (
    Recorder,
    caller_location,
    current_recorder,
    mark_written,
    set_launch_event_factory,
)
from warp._src.recording.storage import is_watching
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.device import Device, get_device
from warp._src.runtime.stream import ScopedStream, Stream
from warp._src.types.arrays import ArrayType
from warp._src.types.signature import type_name
from warp.errors import ArgumentError, AutogradError, DeviceError

# wp.tid() is an int32.
_MAX_EXTENT = 2**31 - 1


def launch(
    kernel: Kernel,
    dim: int | Sequence[int],
    inputs: Sequence[Any] = (),
    outputs: Sequence[Any] = (),
    adj_inputs: Sequence[Any] = (),
    adj_outputs: Sequence[Any] = (),
    device: Any = None,
    stream: Any = None,
    adjoint: bool = False,
    record_tape: bool = True,
    record_cmd: bool = False,
    max_blocks: int = 0,
    block_dim: int = 256,
) -> Launch | None:
    """Run a kernel over a grid of threads.

    Args:
        kernel: A function decorated with `@wp.kernel`.
        dim: Number of threads, or a shape of 1 to 4 dimensions.
        inputs: Arguments of the kernel in the order of its parameters.
        outputs: The remaining arguments; a matter of style, and of `Tape.visualize`.
        adj_inputs: With `adjoint`, gradient arrays that take the place of those of the inputs; None keeps them.
        adj_outputs: With `adjoint`, incoming gradients of the outputs; they are read, never written.
        device: Where to run; the device of `stream`, else the current device by default.
        stream: A stream to queue the launch on; the current one of the device by default.
        adjoint: Run the adjoint kernel instead of the kernel.
        record_tape: Whether a current tape records the launch.
        record_cmd: Return a `Launch` for running again, instead of running now.
        max_blocks: Limit of CUDA blocks; no effect on the CPU.
        block_dim: Threads per CUDA block; no effect on the CPU.

    Raises:
        ArgumentError: An argument does not fit; names the kernel, the parameter and both types.
        CompileError: The kernel does not compile; shows the line.
        AutogradError: With `adjoint`, the gradient would be wrong; names the line.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"launch: kernel must be a function decorated with @wp.kernel, got {_name(kernel)}")
    if stream is not None:
        with scoped_stream(stream, device):
            return launch(
                kernel, dim, inputs, outputs, adj_inputs, adj_outputs, None, None, adjoint, record_tape, record_cmd,
                max_blocks, block_dim,
            )  # fmt: skip
    place = get_device(device)
    shape = launch_shape(dim)
    args = require_sequence(inputs, "inputs")
    input_count = len(args)
    if outputs:
        args += require_sequence(outputs, "outputs")
    if len(args) < kernel.parameter_count:
        args = kernel.complete(args)
    prepared = prepare(kernel, args, place)
    if adjoint:
        _launch_adjoint(
            prepared, shape, args, require_sequence(adj_inputs, "adj_inputs"), adj_outputs, input_count, place,
            max_blocks, block_dim,
        )  # fmt: skip
        return None
    if record_cmd:
        prepared.binder.pack(args, place)
        return Launch(prepared, shape, args, input_count, place, max_blocks, block_dim)
    if config.print_launches:
        print(f"kernel: {kernel.key} dim: {shape} inputs: {args[:input_count]} outputs: {args[input_count:]}")
    recorder = current_recorder() if record_tape else None
    _execute(prepared, shape, args, input_count, place, recorder, max_blocks, block_dim)
    return None


def _execute(
    prepared: Prepared,
    dim: tuple[int, ...],
    args: list[Any],
    input_count: int,
    device: Device,
    recorder: Recorder | None,
    max_blocks: int,
    block_dim: int,
) -> None:
    """Run a launch, note what it wrote, and hand it to the recorder."""
    packed = prepared.binder.pack(args, device)
    behind = prepared.behind(args, recorder is not None)
    written = prepared.written(args, behind)
    if recorder is None:
        prepared.run(dim, args, written, packed, block_dim, max_blocks)
        mark_written(written, signature_of(prepared.program, dim, args) if is_watching() else None)
        return
    variant = prepared.variant(dim, args, written)
    record = prepared.run_recorded(dim, args, written, packed, variant, block_dim, max_blocks)
    location = _location(sys._getframe(2))
    event = LaunchEvent(
        prepared, dim, args, input_count, device, location, variant, record, max_blocks, block_dim, behind=behind
    )
    event.stamp = mark_written(written, event.signature if is_watching(recorder) else None)
    recorder.record(event)


def scoped_stream(stream: Any, device: Any) -> ScopedStream:
    """Make the stream that a launch was given current. Raises ArgumentError if it is none of the launch's device."""
    if not isinstance(stream, Stream):
        raise ArgumentError(f"launch: stream must be a warp.Stream, got {_name(stream)}")
    if device is not None and get_device(device) is not stream.device:
        raise ArgumentError(f"launch: the stream belongs to device '{stream.device}', not to '{get_device(device)}'")
    return ScopedStream(stream, sync_enter=False)


def prepare(kernel: Kernel, args: Sequence[Any], device: Device) -> Prepared:
    """Give the kernel for arguments, compiled for a device. Raises ArgumentError or CompileError."""
    if isinstance(device, CudaDevice):
        return _prepare_cuda(kernel, args, device)
    prepared: Prepared | None = kernel.compiled.get(())
    if prepared is not None:
        return prepared
    if not kernel.is_generic:
        types = tuple(type for _, type in kernel.parameters)
        return kernel.compiled.setdefault((), Prepared(Program(kernel, types)))  # type: ignore[no-any-return]  # the table is untyped
    return prepare_types(kernel, [_argument_type(kernel, number, arg) for number, arg in enumerate(args)])


def prepare_types(kernel: Kernel, given: Sequence[Any]) -> Prepared:
    """Give the compiled kernel for types of arguments. Raises ArgumentError or CompileError."""
    types = kernel.signature(given)
    key = types if kernel.is_generic else ()
    found: Prepared | None = kernel.compiled.get(key)
    if found is None:
        found = kernel.compiled.setdefault(key, Prepared(Program(kernel, types)))
    return found


def program_of(kernel: Kernel, given: Sequence[Any]) -> Program:
    """Give the kernel for types of arguments, compiled only if it was before. Raises ArgumentError."""
    types = kernel.signature(given)
    found: Prepared | None = kernel.compiled.get(types if kernel.is_generic else ())
    return found.program if found is not None else Program(kernel, types)


def _prepare_cuda(kernel: Kernel, args: Sequence[Any], device: CudaDevice) -> CudaPrepared:
    if kernel.is_generic:
        types = kernel.signature([_argument_type(kernel, number, arg) for number, arg in enumerate(args)])
    else:
        types = tuple(type for _, type in kernel.parameters)
    return prepare_on(kernel, types, device)


def prepare_on(kernel: Kernel, types: tuple[Any, ...], device: CudaDevice) -> CudaPrepared:
    """Give the kernel for the concrete types of its parameters, compiled for a CUDA device. Raises CompileError."""
    key = (device.alias, *types)
    found: CudaPrepared | None = kernel.compiled.get(key)
    if found is None or found.program.device is not device:
        found = kernel.compiled[key] = CudaPrepared(CudaProgram(kernel, types, device))
    return found


def _argument_type(kernel: Kernel, number: int, arg: Any) -> Any:
    if arg.__class__ in (int, float):
        return Literal(arg)
    try:
        found = type_of(arg)
        return found if number >= len(kernel.parameters) else seen_as(kernel.parameters[number][1], found, arg)
    except (ArgumentError, BufferError, DeviceError) as error:
        names = [name for name, _ in kernel.parameters]
        which = f", parameter '{names[number]}'" if number < len(names) else ""
        raise ArgumentError(f"kernel '{kernel.key}'{which}: {error}") from error


def require_sequence(value: Any, name: str) -> list[Any]:
    """The arguments of a launch as a list. Raises ArgumentError for a single array, a common slip."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if value is None:
        return []
    raise ArgumentError(f"launch: {name} must be a list or tuple, got {value.__class__.__qualname__}")


def launch_shape(dim: Any) -> tuple[int, ...]:
    """Normalise `dim`. Raises ArgumentError for what is not one to four integers that are not negative."""
    if dim.__class__ is int:
        shape: tuple[int, ...] = (dim,)
    elif isinstance(dim, (tuple, list)):
        shape = tuple(_extent(d, dim) for d in dim)
    else:
        shape = (_extent(dim, dim),)
    if not 1 <= len(shape) <= 4:
        raise ArgumentError(f"launch: dim must have 1 to 4 dimensions, got {dim!r}")
    if min(shape) < 0:
        raise ArgumentError(f"launch: dim must not be negative, got {dim!r}")
    if max(shape) > _MAX_EXTENT:
        raise ArgumentError(f"launch: no dimension may exceed {_MAX_EXTENT}, the largest thread index, got {dim!r}")
    return shape


def _extent(value: Any, dim: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(f"launch: dim must be an integer or a sequence of 1 to 4 integers, got {dim!r}")
    return int(value.__index__())


def _name(value: Any) -> str:
    return f"{value.__class__.__qualname__} {value!r}"[:80]


# -- adjoint launches ----------------------------------------------------------------------------------


def _launch_adjoint(
    prepared: Prepared,
    shape: tuple[int, ...],
    args: list[Any],
    adj_inputs: list[Any],
    adj_outputs: Sequence[Any],
    input_count: int,
    device: Device,
    max_blocks: int,
    block_dim: int,
) -> None:
    """Run the adjoint with the given gradient arrays in the place of the arrays' own."""
    prepared.binder.pack(args, device)  # checks, and wraps foreign arrays
    outputs = require_sequence(adj_outputs, "adj_outputs")
    counts = ((adj_inputs, input_count, "adj_inputs"), (outputs, len(args) - input_count, "adj_outputs"))
    for given, expected, name in counts:
        if len(given) != expected:
            raise ArgumentError(
                f"launch: {name} has {len(given)} entries, but there are {expected} {name.removeprefix('adj_')}; "
                "None keeps an array's own gradient"
            )
    names = [name for name, _ in prepared.binder.parameters]
    bound = list(args)
    for number, gradient in enumerate(adj_inputs):
        bound[number] = _with_gradient(names[number], args[number], gradient, is_scratch=False)
    for number, gradient in enumerate(outputs, input_count):
        bound[number] = _with_gradient(names[number], args[number], gradient, is_scratch=True)
    variant = variant_of(shape, overlaps(bound, prepared.written(bound)))
    backward = prepared.program.backward(variant)
    key = prepared.program.kernel.key
    if prepared.program.recorded(variant) is not None:
        raise AutogradError(
            f"the adjoint of kernel '{key}' needs values that the kernel overwrites, which only a launch recorded on a "
            "tape keeps; launch it on a wp.Tape and call backward()"
        )
    if variant.may_alias:
        require_shared_gradients(bound, prepared.written(bound), key)
    run_backward(backward, prepared.binder, shape, bound, device, key, None, block_dim, max_blocks)


def _with_gradient(name: str, arg: Any, gradient: Any, is_scratch: bool) -> Any:
    """A view of an array argument whose gradient is another array, or a copy of it that may be written."""
    if gradient is None or not isinstance(arg, array):
        return arg
    label = f"launch: the adjoint of parameter '{name}'"
    if not isinstance(gradient, array):
        gradient = as_array(label, ArrayType(arg.dtype, arg.ndim), gradient, not is_scratch, arg.device)
    if gradient.dtype is not arg.dtype or gradient.shape != arg.shape:
        raise ArgumentError(
            f"{label} must be {type_name(arg.dtype)} of shape {arg.shape}, "
            f"got {type_name(gradient.dtype)} of shape {gradient.shape}"
        )
    if not is_scratch:
        check_writable(label, gradient)
    made: array = arg.alias()
    made.grad = duplicate(gradient) if is_scratch else gradient
    return made


# -- reusable launches ---------------------------------------------------------------------------------


class Launch:
    """A launch with its arguments, for running many times; from `wp.launch(..., record_cmd=True)`."""

    def __init__(
        self,
        prepared: Prepared,
        dim: tuple[int, ...],
        args: list[Any],
        input_count: int,
        device: Device,
        max_blocks: int,
        block_dim: int,
    ) -> None:
        self.kernel = prepared.program.kernel
        self.device = device
        self.dim = dim
        self.params = list(args)
        self.max_blocks = max_blocks
        self.block_dim = block_dim
        self._prepared = prepared
        self._input_count = input_count

    def set_dim(self, dim: int | Sequence[int]) -> None:
        """Change the number of threads."""
        self.dim = launch_shape(dim)

    def set_param_at_index(self, index: int, value: Any) -> None:
        """Change an argument by its position. Raises ArgumentError if it does not fit."""
        if not 0 <= index < len(self.params):
            raise ArgumentError(f"kernel '{self.kernel.key}' has {len(self.params)} parameters, there is no {index}")
        changed = [*self.params]
        changed[index] = value
        self._prepared.binder.pack(changed, self.device)
        self.params = changed

    def set_param_by_name(self, name: str, value: Any) -> None:
        """Change an argument by its parameter's name. Raises ArgumentError if there is none or it does not fit."""
        names = [parameter for parameter, _ in self._prepared.binder.parameters]
        if name not in names:
            raise ArgumentError(f"kernel '{self.kernel.key}' has no parameter '{name}'; there are {', '.join(names)}")
        self.set_param_at_index(names.index(name), value)

    def set_params(self, values: Sequence[Any]) -> None:
        """Change all arguments. Raises ArgumentError if they do not fit."""
        changed = list(values)
        self._prepared.binder.pack(changed, self.device)
        self.params = changed

    # The names that programs for ctypes-based launches use.
    set_param_at_index_from_ctype = set_param_at_index
    set_param_by_name_from_ctype = set_param_by_name
    set_params_from_ctypes = set_params

    def launch(self, stream: Any = None) -> None:
        """Run the kernel with the arguments as they are now, on `stream` if given; a current tape records it."""
        if stream is not None:
            with scoped_stream(stream, self.device):
                self.launch()
            return
        args = list(self.params)
        recorder = current_recorder()
        _execute(
            self._prepared, self.dim, args, self._input_count, self.device, recorder, self.max_blocks, self.block_dim
        )


def _make_event(
    *,
    kernel: Kernel,
    dim: Any,
    max_blocks: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    device: Any,
    block_dim: int = 0,
    metadata: Any = None,
) -> LaunchEvent:
    """Make the event of a launch that has already run, for `Tape.record_launch`."""
    args = [*inputs, *outputs]
    place = get_device(device)
    prepared = prepare(kernel, args, place)
    prepared.binder.pack(args, place)
    location = caller_location()
    shape = launch_shape(dim)
    behind = prepared.behind(args, is_recorded=True)
    variant = variant_of(shape, overlaps(args, prepared.written(args, behind)))
    return LaunchEvent(
        prepared, shape, args, len(inputs), place, location, variant, None, max_blocks, block_dim, metadata, behind
    )


def _location(frame: FrameType) -> str:
    # Many launches come from one line.
    return sys.intern(f"{frame.f_code.co_filename}:{frame.f_lineno}")


set_launch_event_factory(_make_event)

__all__ = ["Launch", "launch"]
