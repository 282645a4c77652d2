"""Arrays as DLPack capsules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from warp._src.array.contents import duplicate, duplicate_on_host, use_on
from warp._src.array.elements import ElementLayout
from warp._src.runtime import dlpack
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.device import Device
from warp._src.types.scalars import bfloat16

if TYPE_CHECKING:
    from warp._src.array.array import array

CODES: Final = {"i": 0, "u": 1, "f": 2, "b": 6}
"""DLPack's numbers for NumPy's kinds of scalars."""
BFLOAT_CODE: Final = 4


def export(
    source: array,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return a capsule as `__dlpack__` of the array API standard does; BufferError for what it cannot express.

    It is a versioned one if the consumer takes version 1 or later; only those can say that memory is read-only.
    `stream` is that of the consumer, which waits for the current stream of the array's device: 1 for CUDA's legacy
    stream, as is None, 2 for the stream of the thread, a handle, or -1 for none.
    """
    versioned = max_version is not None and max_version[0] >= 1
    device_type, device_id = device_of(source.device)
    if stream is not None and stream != -1 and device_type == dlpack.CPU:
        raise BufferError(f"stream must be None for an array on device '{source.device}', got {stream!r}")
    if dl_device is not None and tuple(dl_device) != (device_type, device_id):
        if tuple(dl_device) != (dlpack.CPU, 0) or copy is False:
            raise BufferError(f"the array is on device {(device_type, device_id)}, not on {tuple(dl_device)}")
        source, copy = duplicate_on_host(source), False
        device_type, device_id, flags = dlpack.CPU, 0, dlpack.FLAG_COPIED
    elif isinstance(source.device, CudaDevice):
        flags = 0
        _let_wait(source, source.device, stream)
    else:
        flags = 0
    if copy:
        source = duplicate(source)
        flags = dlpack.FLAG_COPIED
    elif source.is_readonly:
        if not versioned:
            raise BufferError("the array is in read-only memory, which only DLPack version 1 can say")
        flags = dlpack.FLAG_READONLY
    values = source._values
    code = code_of(source.element)
    item_size = source.element.scalar.itemsize
    address = source.ptr if source.size else 0
    return dlpack.export_capsule(
        source, address, values.shape, values.strides, item_size, code, device_type, device_id, flags, versioned
    )


def _let_wait(source: array, device: CudaDevice, stream: Any) -> None:
    """Let a consumer's stream wait for what has been queued on the device's current stream."""
    if stream == -1:
        return
    if stream is not None and (not isinstance(stream, int) or stream in (0, -2)):
        raise BufferError(f"stream must be 1, 2, the handle of a stream, -1 or None, got {stream!r}")
    current = use_on(device, (source,))
    handle = dlpack.LEGACY_STREAM if stream is None else stream
    if handle != current.handle:
        event = current.record_event()
        with device.active():
            device.driver.wait_event(handle, event.cuda_event or 0)


def device_of(device: Device) -> tuple[int, int]:
    """Return DLPack's device type and number."""
    return (dlpack.CPU, 0) if device.is_cpu else (dlpack.CUDA, device.ordinal)


def code_of(element: ElementLayout) -> int:
    """Return DLPack's number for the kind of scalars that elements are made of; BufferError for structs."""
    if getattr(element.dtype, "scalar", element.dtype) is bfloat16:
        return BFLOAT_CODE
    code = CODES.get(element.scalar.kind)
    if code is None:
        raise BufferError(f"DLPack has no elements of {element.dtype.name}")
    return code
