"""The calls of cuda-python take what the runtime gives them; where there is no driver they get no further."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp._src.runtime.driver import CudaDriver, Driver
from warp.errors import DeviceError

HANDLE = 0x1000
CALLS: dict[str, tuple[Any, ...]] = {
    "device_count": (),
    "driver_version": (),
    "function": ("cuLaunchKernel",),
    "explain": ("cuLaunchKernel", 1),
    "device_name": (0,),
    "device_uuid": (0,),
    "device_attribute": (0, "MULTIPROCESSOR_COUNT"),
    "total_memory": (0,),
    "can_access_peer": (0, 1),
    "retain_context": (0,),
    "current_context": (),
    "set_context": (HANDLE,),
    "synchronize_context": (),
    "enable_peer": (HANDLE,),
    "disable_peer": (HANDLE,),
    "free_memory": (),
    "allocate": (8,),
    "free": (HANDLE,),
    "allocate_async": (8, HANDLE),
    "free_async": (HANDLE, HANDLE),
    "allocate_host": (8,),
    "free_host": (HANDLE,),
    "copy": (HANDLE, HANDLE, 8, HANDLE),
    "fill_bytes": (HANDLE, 7, 8, HANDLE),
    "ordinal_of": (HANDLE,),
    "memory_pool": (0,),
    "pool_attribute": (HANDLE, "USED_MEM_CURRENT"),
    "set_pool_attribute": (HANDLE, "RELEASE_THRESHOLD", 2**40),
    "trim_pool": (HANDLE, 8),
    "is_pool_accessible": (HANDLE, 1),
    "set_pool_access": (HANDLE, 1, True),
    "create_stream": (-1,),
    "destroy_stream": (HANDLE,),
    "priority_range": (),
    "is_blocking": (HANDLE,),
    "synchronize_stream": (HANDLE,),
    "is_stream_complete": (HANDLE,),
    "is_capturing": (HANDLE,),
    "wait_event": (HANDLE, HANDLE),
    "create_event": (True, False),
    "destroy_event": (HANDLE,),
    "record_event": (HANDLE, HANDLE),
    "synchronize_event": (HANDLE,),
    "is_event_complete": (HANDLE,),
    "elapsed_milliseconds": (HANDLE, HANDLE),
    "load_library": (b"code",),
    "kernel": (HANDLE, "name"),
    "launch": (HANDLE, 2, 256, HANDLE, (b"launch", b"arguments")),
    "begin_capture": (HANDLE, 1),
    "end_capture": (HANDLE,),
    "exchange_capture_mode": (2,),
    "instantiate": (HANDLE,),
    "launch_graph": (HANDLE, HANDLE),
    "destroy_graph": (HANDLE,),
    "destroy_executable": (HANDLE,),
    "add_child_graph": (HANDLE, HANDLE),
    "create_condition": (HANDLE,),
    "add_conditional": (HANDLE, HANDLE, True),
    "begin_capture_to": (HANDLE, HANDLE, 1),
    "last_captured": (HANDLE,),
}
NAMES = [] if wp.is_cuda_available() else sorted(CALLS)


def unopened() -> CudaDriver:
    made = object.__new__(CudaDriver)
    made._bindings = importlib.import_module("cuda.bindings.driver")
    return made


@pytest.mark.parametrize("name", NAMES)
def test_arguments_have_the_types_that_the_bindings_take(name: str) -> None:
    with pytest.raises(RuntimeError, match="driver"):
        getattr(unopened(), name)(*CALLS[name])


def test_drivers_that_are_too_old_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaDriver, "_call", lambda driver, name, *arguments: 11080)
    with pytest.raises(DeviceError, match=r"the CUDA driver is for CUDA 11\.8; 12\.0 or later is needed"):
        CudaDriver()


def test_wrong_types_are_found_before_the_driver_is() -> None:
    with pytest.raises((TypeError, ValueError)):
        unopened()._call("cuMemFree", "nowhere")
    with pytest.raises((TypeError, ValueError)):
        unopened()._call("cuStreamSynchronize", "nowhere")


def test_every_call_is_known_to_both_drivers() -> None:
    wanted = {name for name in vars(Driver) if not name.startswith("_")}
    assert wanted == set(CALLS)
    for kind in (CudaDriver, FakeDriver):
        assert all(callable(getattr(kind, name)) for name in wanted)
