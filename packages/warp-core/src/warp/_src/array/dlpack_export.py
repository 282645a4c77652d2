"""Arrays as DLPack capsules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from warp._src.array.elements import ElementLayout
from warp._src.runtime import dlpack
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
    """
    versioned = max_version is not None and max_version[0] >= 1
    device_type, device_id = device_of(source.device)
    if stream is not None and stream != -1 and device_type == dlpack.CPU:
        raise BufferError(f"stream must be None for an array on device '{source.device}', got {stream!r}")
    if dl_device is not None and tuple(dl_device) != (device_type, device_id):
        raise BufferError(f"the array is on device {(device_type, device_id)}, not on {tuple(dl_device)}")
    flags = 0
    if copy:
        source = source.wrap(source._values.copy(order="C"), source.element, source.device)
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
