"""Copying and filling: on the host, differentiable, recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warp._src.array.elements import numpy_element
from warp._src.array.events import CopyEvent, FillEvent, Part
from warp._src.array.memory import Values, allocate
from warp._src.recording.recorder import about_to_write, current_recorder, mark_written
from warp._src.recording.storage import is_watching
from warp._src.runtime.device import Device, get_device
from warp.errors import ArgumentError

if TYPE_CHECKING:
    from warp._src.array.array import array


def copy(
    dest: array, src: array, dest_offset: int = 0, src_offset: int = 0, count: int = 0, stream: object = None
) -> None:
    """Copy elements of `src` to `dest`, counted in row-major order; differentiable, recorded on tapes.

    `count` elements are copied, all from `src_offset` on by default. Both arrays may have gaps and may overlap.
    Raises ArgumentError if the types differ or the range does not fit.
    """
    if stream is not None and getattr(stream, "device", None) != getattr(dest, "device", None):
        raise ArgumentError(f"stream: {stream!r} is not a stream of the device of dest")
    _check_pair(dest, src)
    amount = count if count > 0 else src.size - src_offset
    if count < 0:
        raise ArgumentError(f"count must not be negative, got {count}")
    _check_range("src", src, src_offset, amount)
    _check_range("dest", dest, dest_offset, amount)
    _copy(dest, src, dest_offset, src_offset, amount)


def _check_pair(dest: array, src: array) -> None:
    for name, value in (("dest", dest), ("src", src)):
        if not hasattr(value, "element"):
            raise ArgumentError(f"{name} must be a warp.array, got {type(value).__qualname__}")
    if dest.dtype is not src.dtype:
        raise ArgumentError(f"dest has elements of {dest.dtype.name}, src of {src.dtype.name}; they must be equal")
    if dest.device is not src.device:
        raise ArgumentError(f"dest is on device {dest.device}, src on {src.device}")
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
    values = source.read(source.array._values)
    if np.may_share_memory(values, target.array._values):
        values = values.copy()  # NumPy assigns overlapping views of different strides element by element
    about_to_write((target.array,))
    target.write(target.array._values, values)
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
    return Part(whole, np.unravel_index(np.arange(offset, offset + count), whole.shape), offset)


def assign(dest: array, src: array | Values) -> None:
    """Copy all elements of an array, or of a NumPy array already in the form of `dest`."""
    if not isinstance(src, np.ndarray):
        _check_pair(dest, src)
        if src.size != dest.size:
            raise ArgumentError(f"src: {src!r} does not fit into {dest!r}")
        _copy(dest, src, 0, 0, dest.size)
        return
    _check_writable(dest, "the target of assign()")
    dest.note_foreign_writes()
    about_to_write((dest,))
    np.copyto(dest._values, src)
    _note_fill(dest, "assign")


def fill(target: array, value: Any, label: str) -> None:
    """Set every element to a host value."""
    _check_writable(target, f"the target of {label}()")
    element = numpy_element(target.element, value, "value")
    target.note_foreign_writes()
    about_to_write((target,))
    target._values[...] = element
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
    src: array,
    device: Device | str | None = None,
    requires_grad: bool | None = None,
    pinned: bool | None = None,
    retain_grad: bool = False,
) -> array:
    """Return a copy without gaps; differentiable, recorded on tapes.

    It needs a gradient if `src` does; `requires_grad=False` cuts the path of gradients.
    """
    if not hasattr(src, "element"):
        raise ArgumentError(f"src must be a warp.array, got {type(src).__qualname__}")
    place = src.device if device is None else get_device(device)
    wants_grad = src.requires_grad if requires_grad is None else requires_grad
    made = src.wrap(allocate(src.shape, src.element, False), src.element, place, wants_grad)
    made.pinned = src.pinned if pinned is None else pinned
    made.retain_grad = retain_grad
    _copy(made, src, 0, 0, src.size, detaches=src.requires_grad and not wants_grad)
    return made
