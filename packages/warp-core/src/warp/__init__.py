"""Differentiable kernels for Python.

Functions decorated with `@wp.kernel` are compiled just in time and run over a grid of threads; every launch can be
differentiated with a `wp.Tape`.
"""

# ruff: noqa: E402 - nothing may be imported before the check for a package of the same name
from __future__ import annotations

from warp._src.plugin_host import contributed as _contributed
from warp._src.plugin_host import contributed_names as _contributed_names
from warp._src.plugin_host import install_finder as _install_finder
from warp._src.plugin_host import refuse_beside_peer as _refuse_beside_peer

_refuse_beside_peer()

from typing import Any as Any

from warp import codegen as codegen
from warp import config as config
from warp import context as context
from warp import errors as errors
from warp import recording as recording
from warp import types as types
from warp._src.array.array import array as array
from warp._src.array.copying import clone as clone
from warp._src.array.copying import copy as copy
from warp._src.array.creation import empty as empty
from warp._src.array.creation import empty_like as empty_like
from warp._src.array.creation import from_numpy as from_numpy
from warp._src.array.creation import from_ptr as from_ptr
from warp._src.array.creation import full as full
from warp._src.array.creation import full_like as full_like
from warp._src.array.creation import ones as ones
from warp._src.array.creation import ones_like as ones_like
from warp._src.array.creation import zeros as zeros
from warp._src.array.creation import zeros_like as zeros_like
from warp._src.array.indexed import indexedarray as indexedarray
from warp._src.array.ranked import array1d as array1d
from warp._src.array.ranked import array2d as array2d
from warp._src.array.ranked import array3d as array3d
from warp._src.array.ranked import array4d as array4d
from warp._src.array.ranked import indexedarray1d as indexedarray1d
from warp._src.array.ranked import indexedarray2d as indexedarray2d
from warp._src.array.ranked import indexedarray3d as indexedarray3d
from warp._src.array.ranked import indexedarray4d as indexedarray4d
from warp._src.builtins.host import PUBLIC as _BUILTINS
from warp._src.interop.dlpack import from_dlpack as from_dlpack
from warp._src.interop.dlpack import to_dlpack as to_dlpack
from warp._src.interop.functions import derive as _derive
from warp._src.interop.numpy_types import dtype_from_numpy as dtype_from_numpy
from warp._src.interop.numpy_types import dtype_to_numpy as dtype_to_numpy
from warp._src.lang.decorators import constant as constant
from warp._src.lang.decorators import func as func
from warp._src.lang.decorators import func_grad as func_grad
from warp._src.lang.decorators import func_native as func_native
from warp._src.lang.decorators import func_replay as func_replay
from warp._src.lang.decorators import get_module_options as get_module_options
from warp._src.lang.decorators import kernel as kernel
from warp._src.lang.decorators import overload as overload
from warp._src.lang.decorators import set_module_options as set_module_options
from warp._src.lang.modules import Module as Module
from warp._src.lang.modules import get_module as get_module
from warp._src.lang.objects import Function as Function
from warp._src.lang.objects import Kernel as Kernel
from warp._src.lang.stubs import INTRINSICS as _INTRINSICS
from warp._src.launch.launch import Launch as Launch
from warp._src.launch.launch import launch as launch
from warp._src.launch.loading import clear_kernel_cache as clear_kernel_cache
from warp._src.launch.loading import force_load as force_load
from warp._src.launch.loading import init as init
from warp._src.launch.loading import is_initialized as is_initialized
from warp._src.launch.loading import load_module as load_module
from warp._src.launch.mapping import map as map
from warp._src.runtime.conditionals import capture_if as capture_if
from warp._src.runtime.conditionals import capture_while as capture_while
from warp._src.runtime.device import Device as Device
from warp._src.runtime.device import ScopedDevice as ScopedDevice
from warp._src.runtime.device import get_cuda_device_count as get_cuda_device_count
from warp._src.runtime.device import get_cuda_devices as get_cuda_devices
from warp._src.runtime.device import get_device as get_device
from warp._src.runtime.device import get_devices as get_devices
from warp._src.runtime.device import get_preferred_device as get_preferred_device
from warp._src.runtime.device import is_cpu_available as is_cpu_available
from warp._src.runtime.device import is_cuda_available as is_cuda_available
from warp._src.runtime.device import is_device_available as is_device_available
from warp._src.runtime.device import set_device as set_device
from warp._src.runtime.graph import Graph as Graph
from warp._src.runtime.graph import ScopedCapture as ScopedCapture
from warp._src.runtime.graph import capture_begin as capture_begin
from warp._src.runtime.graph import capture_end as capture_end
from warp._src.runtime.graph import capture_launch as capture_launch
from warp._src.runtime.pools import ScopedMempool as ScopedMempool
from warp._src.runtime.pools import ScopedMempoolAccess as ScopedMempoolAccess
from warp._src.runtime.pools import ScopedPeerAccess as ScopedPeerAccess
from warp._src.runtime.pools import get_mempool_release_threshold as get_mempool_release_threshold
from warp._src.runtime.pools import get_mempool_used_mem_current as get_mempool_used_mem_current
from warp._src.runtime.pools import get_mempool_used_mem_high as get_mempool_used_mem_high
from warp._src.runtime.pools import is_mempool_access_enabled as is_mempool_access_enabled
from warp._src.runtime.pools import is_mempool_access_supported as is_mempool_access_supported
from warp._src.runtime.pools import is_mempool_enabled as is_mempool_enabled
from warp._src.runtime.pools import is_mempool_supported as is_mempool_supported
from warp._src.runtime.pools import is_peer_access_enabled as is_peer_access_enabled
from warp._src.runtime.pools import is_peer_access_supported as is_peer_access_supported
from warp._src.runtime.pools import set_mempool_access_enabled as set_mempool_access_enabled
from warp._src.runtime.pools import set_mempool_enabled as set_mempool_enabled
from warp._src.runtime.pools import set_mempool_release_threshold as set_mempool_release_threshold
from warp._src.runtime.pools import set_peer_access_enabled as set_peer_access_enabled
from warp._src.runtime.stream import Event as Event
from warp._src.runtime.stream import ScopedStream as ScopedStream
from warp._src.runtime.stream import Stream as Stream
from warp._src.runtime.stream import get_event_elapsed_time as get_event_elapsed_time
from warp._src.runtime.stream import get_stream as get_stream
from warp._src.runtime.stream import record_event as record_event
from warp._src.runtime.stream import set_stream as set_stream
from warp._src.runtime.stream import synchronize as synchronize
from warp._src.runtime.stream import synchronize_device as synchronize_device
from warp._src.runtime.stream import synchronize_event as synchronize_event
from warp._src.runtime.stream import synchronize_stream as synchronize_stream
from warp._src.runtime.stream import wait_event as wait_event
from warp._src.runtime.stream import wait_stream as wait_stream
from warp._src.runtime.timer import ScopedTimer as ScopedTimer
from warp._src.types import SHORT_NAMES as _SHORT_NAMES
from warp._src.types import AnyFloat as Float
from warp._src.types import AnyInt as Int
from warp._src.types import AnyScalar as Scalar
from warp._src.types import bfloat16 as bfloat16
from warp._src.types import bool_ as bool
from warp._src.types import float16 as float16
from warp._src.types import float32 as float32
from warp._src.types import float64 as float64
from warp._src.types import int8 as int8
from warp._src.types import int16 as int16
from warp._src.types import int32 as int32
from warp._src.types import int64 as int64
from warp._src.types import struct as struct
from warp._src.types import uint8 as uint8
from warp._src.types import uint16 as uint16
from warp._src.types import uint32 as uint32
from warp._src.types import uint64 as uint64
from warp._version import __version__ as __version__
from warp.plugins import install_deriver as _install_deriver

pi = PI = 3.141592653589793
tau = TAU = 2.0 * pi
e = E = 2.718281828459045
half_pi = HALF_PI = 0.5 * pi
inf = INF = float("inf")
nan = NAN = float("nan")

globals().update(_SHORT_NAMES)
globals().update(_INTRINSICS)
globals().update(_BUILTINS)

_install_finder()
_install_deriver(_derive)


def __getattr__(name: str) -> Any:
    return _contributed(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_contributed_names()})
