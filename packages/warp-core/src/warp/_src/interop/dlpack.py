"""DLPack: arrays from and to everything that speaks it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from warp._src.array.array import array
from warp._src.array.dlpack_export import BFLOAT_CODE, CODES, export
from warp._src.array.elements import ElementLayout, element_layout
from warp._src.interop.elements import array_at, element_for
from warp._src.runtime import dlpack
from warp._src.runtime.cuda import first_cuda_device
from warp._src.runtime.device import Device, get_device
from warp._src.runtime.stream import get_stream
from warp._src.types.scalars import bfloat16, scalar_from
from warp.errors import ArgumentError, DeviceError

_FUNCTION: Final = "from_dlpack"
_VERSION: Final = (1, 0)
_KINDS: Final = {code: kind for kind, code in CODES.items()}
_KIND_NAMES: Final = {0: "int", 1: "uint", 2: "float", 3: "opaque", 4: "bfloat", 5: "complex", 6: "bool"}
_HOST_DEVICES: Final = (dlpack.CPU, dlpack.CUDA_PINNED)
_legacy_types: Final[set[type]] = set()


def from_dlpack(source: Any, dtype: Any = None) -> array:
    """Return an array of the same memory as a DLPack producer or capsule, which it keeps alive.

    Args:
        source: An object with `__dlpack__`, whose stream is synchronised with Warp's current one, or a capsule, whose
            is not.
        dtype: Type of the elements; vectors and matrices take trailing dimensions. By default the source's.

    Raises:
        ArgumentError: `source` has no DLPack, its type has no counterpart, or its memory cannot be seen as `dtype`.
        BufferError: The producer refuses, or the capsule was used before.
        DeviceError: The memory is on a device that Warp does not have.
    """
    tensor, device = _ask(source) if hasattr(source, "__dlpack__") else _take(source)
    keeper, address, shape, strides, has_strides, code, bits, device_type, _, flags = tensor
    element = _element(code, bits, flags >> 32, dtype)
    steps = strides if has_strides else None
    made = array_at(_FUNCTION, element, device, address, shape, steps, keeper, bool(flags & dlpack.FLAG_READONLY))
    made.pinned = device_type == dlpack.CUDA_PINNED
    return made


def to_dlpack(wp_array: array) -> Any:
    """Return a capsule without a version, which every consumer takes, once; no stream is synchronised.

    Vectors and matrices add trailing dimensions. BufferError for read-only memory and for structs.
    """
    if not isinstance(wp_array, array):
        raise ArgumentError(f"to_dlpack: wp_array must be a warp.array, got {type(wp_array).__qualname__}")
    return export(wp_array, stream=-1 if wp_array.device.is_cuda else None)


def _ask(source: Any) -> tuple[dlpack.ImportedTensor, Device]:
    """Take the tensor of a producer, and say where it is."""
    if first_cuda_device() is None:
        # Many producers are slow to tell their device, which only streams are asked for.
        tensor, device = _take(_request(source))
        if not device.is_cuda:
            return tensor, device
    options: dict[str, Any] = {}
    if hasattr(source, "__dlpack_device__"):
        kind, number = source.__dlpack_device__()
        device = _device(int(kind), int(number or 0))
        if device.is_cuda:
            options["stream"] = get_stream(device).cuda_stream
    return _take(_request(source, **options))


def _take(capsule: Any) -> tuple[dlpack.ImportedTensor, Device]:
    """Take the tensor out of a capsule, and say where it is."""
    if type(capsule).__name__ != "PyCapsule":
        raise ArgumentError(
            f"{_FUNCTION}: source must have __dlpack__ or be a DLPack capsule, got {type(capsule).__qualname__}"
        )
    tensor = dlpack.import_capsule(capsule)
    return tensor, _device(tensor[7], tensor[8])


def _request(source: Any, **options: Any) -> Any:
    """Ask a producer for a capsule, of version 1 if it knows that."""
    kind = type(source)
    if kind in _legacy_types:
        return source.__dlpack__(**options)
    try:
        return source.__dlpack__(**options, max_version=_VERSION)
    except TypeError:
        capsule = source.__dlpack__(**options)
        _legacy_types.add(kind)
        return capsule


def _device(kind: int, number: int) -> Device:
    if kind in _HOST_DEVICES:
        return get_device("cpu")
    if kind != dlpack.CUDA:
        raise DeviceError(f"{_FUNCTION}: Warp has no counterpart of DLPack's device {(int(kind), number)}")
    return get_device(f"cuda:{number}")


@lru_cache(maxsize=256)
def _element(code: int, bits: int, lanes: int, dtype: Any) -> ElementLayout:
    name = f"{_KIND_NAMES.get(code, f'kind {code}')}{bits}" + (f"x{lanes}" if lanes != 1 else "")
    if (code, bits, lanes) == (BFLOAT_CODE, 16, 1) and dtype is None:
        return element_layout(bfloat16)
    kind = _KINDS.get(code)
    known = kind is not None and lanes == 1 and bits in (8, 16, 32, 64) and (kind != "f" or bits > 8)
    scalar = np.dtype(f"{kind}{bits // 8}") if known else None
    if dtype is None:
        found = None if scalar is None else scalar_from(scalar)
        if found is None:
            raise ArgumentError(f"{_FUNCTION}: elements of type {name} have no counterpart in Warp; give dtype")
        return element_layout(found)
    if lanes != 1 or bits % 8:
        raise ArgumentError(f"{_FUNCTION}: elements of type {name} cannot be seen as another type")
    return element_for(_FUNCTION, dtype, np.dtype(f"V{bits // 8}") if scalar is None else scalar, name)
