"""Copying and filling, between any devices: differentiable, recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warp._src.array.contents import Part, copy_part, fill_part, replace
from warp._src.array.elements import numpy_element
from warp._src.array.events import CopyEvent, FillEvent
from warp._src.array.indexed import indexedarray
from warp._src.array.memory import Values
from warp._src.recording.recorder import about_to_write, current_recorder, mark_written
from warp._src.recording.storage import is_watching
from warp._src.runtime.device import Device, get_device
from warp._src.runtime.stream import ScopedStream, Stream
from warp.errors import ArgumentError

if TYPE_CHECKING:
    from warp._src.array.array import array


def copy(
    dest: array,
    src: array | indexedarray,
    dest_offset: int = 0,
    src_offset: int = 0,
    count: int = 0,
    stream: object = None,
) -> None:
    """Copy elements of `src` to `dest`, counted in row-major order; differentiable, recorded on tapes.

    `count` elements are copied, all from `src_offset` on by default. Both arrays may have gaps and may overlap, and
    may be on different devices; `src` may be an indexed array. The copy is queued on the current stream of the device,
    of `dest` if both are on CUDA devices, or on `stream`; the host waits for copies from and to its memory unless that
    is pinned.
    Raises ArgumentError if the types differ or the range does not fit.
    """
    if isinstance(src, indexedarray):
        src = src.contiguous()
    _check_pair(dest, src)
    if stream is not None and getattr(stream, "device", None) not in (dest.device, src.device):
        raise ArgumentError(f"stream: {stream!r} is not a stream of the device of dest or src")
    amount = count if count > 0 else src.size - src_offset
    if count < 0:
        raise ArgumentError(f"count must not be negative, got {count}")
    _check_range("src", src, src_offset, amount)
    _check_range("dest", dest, dest_offset, amount)
    if isinstance(stream, Stream) and stream.device.is_cuda:
        with ScopedStream(stream, sync_enter=False):
            _copy(dest, src, dest_offset, src_offset, amount)
    else:
        _copy(dest, src, dest_offset, src_offset, amount)


def _check_pair(dest: array, src: array) -> None:
    for name, value in (("dest", dest), ("src", src)):
        if not hasattr(value, "element"):
            raise ArgumentError(f"{name} must be a warp.array, got {type(value).__qualname__}")
    if dest.dtype is not src.dtype:
        raise ArgumentError(f"dest has elements of {dest.dtype.name}, src of {src.dtype.name}; they must be equal")
    _check_writable(dest, "dest")


def _check_writable(target: array, name: str) -> None:
    if target.is_readonly:
        raise ArgumentError(f"{name} is an array in read-only memory")


def _check_range(name: str, target: array, offset: int, count: int) -> None:
    if offset < 0:
        raise ArgumentError(f"{name}_offset must not be negative, got {offset}")
    if offset + count > target.size or count < 0:
        raise ArgumentError(
            f"{name} has {target.size} elements of {target.dtype.name}: "
            f"{max(count, 0)} elements from {name}_offset {offset} on do not fit"
        )


def _copy(dest: array, src: array, dest_offset: int, src_offset: int, count: int, detaches: bool = False) -> None:
    if not count:
        return
    if dest.shape == src.shape and count == dest.size:
        target, source = Part(dest), Part(src)
    else:
        target, source = _section(dest, dest_offset, count), _section(src, src_offset, count)
    dest.note_foreign_writes()
    src.note_foreign_writes()
    about_to_write((target.array,))
    copy_part(target, source)
    _note_copy(target, source, detaches)


def note_copy(dest: array, src: array, detaches: bool) -> None:
    """Record that a new array was made with the elements of another."""
    src.note_foreign_writes()
    _note_copy(_section(dest, 0, dest.size), _section(src, 0, src.size), detaches)


def _note_copy(target: Part, source: Part, detaches: bool) -> None:
    recorder = current_recorder()
    if recorder is None and not is_watching():
        mark_written((target.array,))
        return
    event = CopyEvent(target, source, detaches)
    event.stamp = mark_written(event.writes, event.signature if is_watching(recorder) else None)
    if recorder is not None:
        recorder.record(event)


def _section(whole: array, offset: int, count: int) -> Part:
    """Return `count` elements from `offset` on as something with one dimension."""
    if whole.ndim == 1:
        return Part(whole if count == whole.size else whole[offset : offset + count])
    if whole.is_contiguous:
        return Part(whole.flatten()[offset : offset + count])
    return Part(whole, offset, count)


def assign(dest: array, src: array | indexedarray | Values) -> None:
    """Copy all elements of an array, or of a NumPy array already in the form of `dest`."""
    if isinstance(src, indexedarray):
        src = src.contiguous()
    if not isinstance(src, np.ndarray):
        _check_pair(dest, src)
        if src.size != dest.size:
            raise ArgumentError(f"src: {src!r} does not fit into {dest!r}")
        _copy(dest, src, 0, 0, dest.size)
        return
    _check_writable(dest, "the target of assign()")
    dest.note_foreign_writes()
    about_to_write((dest,))
    replace(dest, src)
    _note_fill(dest, "assign")


def fill(target: array, value: Any, label: str) -> None:
    """Set every element to a host value."""
    _check_writable(target, f"the target of {label}()")
    element = numpy_element(target.element, value, "value")
    target.note_foreign_writes()
    about_to_write((target,))
    fill_part(Part(target), element)
    _note_fill(target, label)


def _note_fill(target: array, label: str) -> None:
    recorder = current_recorder()
    if recorder is None and not is_watching():
        mark_written((target,))
        return
    event = FillEvent(target, label)
    event.stamp = mark_written(event.writes, event.signature if is_watching(recorder) else None)
    if recorder is not None:
        recorder.record(event)


def clone(
    src: array | indexedarray,
    device: Device | str | None = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return a copy without gaps; differentiable, recorded on tapes.

    It needs a gradient if `src` does; `requires_grad=False` cuts the path of gradients.
    """
    if isinstance(src, indexedarray):
        src = src.contiguous()
    if not hasattr(src, "element"):
        raise ArgumentError(f"src must be a warp.array, got {type(src).__qualname__}")
    place = src.device if device is None else get_device(device)
    wants_grad = src.requires_grad if requires_grad is None else requires_grad
    is_pinned = src.pinned if pinned is None else pinned
    made = src.new(src.shape, src.element, place, False, pinned=is_pinned and place.is_cpu)
    made._requires_grad = wants_grad
    made.retain_grad = retain_grad
    _copy(made, src, 0, 0, src.size, detaches=src.requires_grad and not wants_grad)
    return made
