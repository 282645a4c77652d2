"""DLPack in both directions: types, layouts, flags and the life of capsules, with both makers of capsules."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import threading
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warp as wp
from warp._src.launch.program import executor
from warp._src.runtime import dlpack
from warp.errors import ArgumentError, DeviceError

SCALARS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.fixture(autouse=True, params=["native", "ctypes"])
def capsules(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make and take capsules in both ways."""
    executor()
    if request.param == "ctypes":
        monkeypatch.setattr(dlpack, "_export", dlpack._export_with_ctypes)
        monkeypatch.setattr(dlpack, "_import", dlpack._import_with_ctypes)
    return str(request.param)


class Producer:
    """A producer that knows version 1, or one from before."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


class OldProducer(Producer):
    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]  # as old producers
        assert stream is None
        return self.values.__dlpack__()


class OnDevice(Producer):
    def __init__(self, device: tuple[int, int | None]) -> None:
        super().__init__(np.zeros(1))
        self.device = device

    def __dlpack__(self, **_options: Any) -> Any:
        kind, number = self.device
        return dlpack.export_capsule(self, self.values.ctypes.data, (1,), (8,), 8, 2, kind, number or 0)

    def __dlpack_device__(self) -> Any:
        return self.device


@st.composite
def layouts(draw: Any) -> Any:
    """Draw a NumPy array with gaps between its elements."""
    shape = draw(st.lists(st.integers(0, 4), min_size=0, max_size=4))
    steps = [draw(st.integers(1, 3)) for _ in shape]
    dtype = np.dtype(draw(st.sampled_from(SCALARS)))
    whole = np.random.default_rng(0).integers(0, 2, [n * s for n, s in zip(shape, steps, strict=True)]).astype(dtype)
    view = whole[(*(slice(None, None, step) for step in steps), ...)]
    return view.transpose(draw(st.permutations(range(len(shape)))))


@given(layouts())
@settings(max_examples=80, deadline=None)
def test_arrays_of_numpy_come_in_with_their_memory(values: Any) -> None:
    a = wp.from_dlpack(values)
    assert a.shape == values.shape
    assert a.dtype is wp.dtype_from_numpy(values.dtype)
    np.testing.assert_array_equal(a.numpy(), values)
    a.fill_(1)
    np.testing.assert_array_equal(values, np.ones_like(values))


@given(layouts())
@settings(max_examples=80, deadline=None)
def test_arrays_of_warp_go_out_with_their_memory(values: Any) -> None:
    a = wp.array(values, dtype=wp.dtype_from_numpy(values.dtype), shape=values.shape, copy=False)
    there = np.from_dlpack(a)
    assert there.dtype == values.dtype
    np.testing.assert_array_equal(there, values)
    a.fill_(1)
    np.testing.assert_array_equal(there, np.ones_like(values))


@pytest.mark.parametrize("make", [lambda a: a, wp.to_dlpack, lambda a: a.__dlpack__(max_version=(1, 0)), Producer])
def test_every_route_shares_memory(make: Any) -> None:
    a = wp.array([1.0, 2.0], dtype=float)
    b = wp.from_dlpack(make(a))
    b.fill_(3.0)
    assert a.list() == [3.0, 3.0]
    assert b.dtype is wp.float32


def test_producers_from_before_version_1_are_asked_as_they_expect() -> None:
    values = np.arange(3.0)
    for _ in range(2):
        assert wp.from_dlpack(OldProducer(values)).list() == [0.0, 1.0, 2.0]


def test_consumers_choose_the_version() -> None:
    a = wp.zeros(2)
    assert "dltensor_versioned" in repr(a.__dlpack__(max_version=(1, 3)))
    for options in ({}, {"max_version": None}, {"max_version": (0, 8)}):
        assert "versioned" not in repr(a.__dlpack__(**options))
    assert a.__dlpack_device__() == (1, 0)


# ---------------------------------------------------------------------------------------------------- elements


def test_vectors_take_trailing_dimensions_of_strided_rows() -> None:
    values = np.arange(50, dtype=np.float32).reshape(5, 10)
    a = wp.from_dlpack(values[:, 4:7], dtype=wp.vec3)
    assert (a.shape, a.strides) == ((5,), (40,))
    np.testing.assert_array_equal(a.numpy(), values[:, 4:7])
    b = wp.from_dlpack(values[::2, :4], dtype=wp.mat22)
    np.testing.assert_array_equal(b.numpy(), values[::2, :4].reshape(3, 2, 2))
    np.testing.assert_array_equal(np.from_dlpack(a), values[:, 4:7])
    with pytest.raises(ArgumentError, match="not next to each other"):
        wp.from_dlpack(values[:, 0:6:2], dtype=wp.vec3)
    with pytest.raises(ArgumentError, match="does not split"):
        wp.from_dlpack(values, dtype=wp.vec3)


def test_types_of_the_same_size_can_be_chosen_for_integers_only() -> None:
    values = np.array([1, 0, 1], np.uint8)
    assert wp.from_dlpack(values, dtype=wp.bool).dtype is wp.bool
    assert wp.from_dlpack(np.array([-1], np.int32), dtype=wp.uint32).list() == [2**32 - 1]
    for dtype in (wp.int32, wp.float16, wp.vec3):
        with pytest.raises(ArgumentError, match="uint8"):
            wp.from_dlpack(values, dtype=dtype)
    with pytest.raises(ArgumentError, match="float32"):
        wp.from_dlpack(np.zeros(3, np.float32), dtype=wp.int32)


def test_bfloat16_goes_out_and_in() -> None:
    bits = wp.array(np.array([1.0, 2.5], ml_dtypes.bfloat16))
    assert bits.dtype is wp.bfloat16
    assert wp.from_dlpack(bits).dtype is wp.bfloat16
    assert wp.from_dlpack(bits, dtype=wp.uint16).list() == [0x3F80, 0x4020]


@pytest.mark.parametrize("values", [np.zeros(2, ">f4"), np.zeros(2, "M8[s]"), np.zeros(2, ml_dtypes.float8_e5m2)])
def test_numpy_refuses_what_dlpack_cannot_say(values: Any) -> None:
    with pytest.raises(BufferError):
        wp.from_dlpack(values)


def test_complex_numbers_are_type_errors() -> None:
    with pytest.raises(TypeError, match="complex64 have no counterpart"):
        wp.from_dlpack(np.zeros(2, np.complex64))


def test_structs_do_not_go_out() -> None:
    @wp.struct
    class Pair:
        first: float
        second: float

    with pytest.raises(BufferError, match="Pair"):
        wp.to_dlpack(wp.zeros(2, dtype=Pair))


# ---------------------------------------------------------------------------------------------------- flags, devices


def test_read_only_memory_stays_read_only() -> None:
    values = np.arange(3.0)
    capsule = dlpack.export_capsule(
        values, values.ctypes.data, (3,), (8,), 8, 2, flags=dlpack.FLAG_READONLY, versioned=True
    )
    a = wp.from_dlpack(capsule)
    assert a.is_readonly
    assert wp.from_dlpack(a).is_readonly
    with pytest.raises(ValueError, match="read-only"):
        a.numpy()[0] = 1.0
    with pytest.raises(ArgumentError, match="read-only"):
        a.fill_(1.0)
    with pytest.raises(BufferError, match="read-only"):
        wp.to_dlpack(a)


def test_copies() -> None:
    a = wp.array([1.0, 2.0])[::2]
    b = wp.from_dlpack(a.__dlpack__(copy=True))
    b.fill_(5.0)
    assert (a.list(), b.strides) == ([1.0], (8,))
    assert wp.from_dlpack(a.__dlpack__(copy=False)).ptr == a.ptr


def test_devices_and_streams() -> None:
    a = wp.zeros(2)
    assert wp.from_dlpack(a.__dlpack__(dl_device=(1, 0), stream=-1)).shape == (2,)
    with pytest.raises(BufferError, match=r"not on \(2, 0\)"):
        a.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="stream must be None"):
        a.__dlpack__(stream=1)
    assert wp.from_dlpack(OnDevice((1, None))).shape == (1,)
    with pytest.raises(DeviceError, match="CUDA is not available"):
        wp.from_dlpack(OnDevice((2, 7)))
    with pytest.raises(DeviceError, match=r"\(10, 0\)"):
        wp.from_dlpack(OnDevice((10, 0)))


def test_pinned_memory_is_memory_of_the_host() -> None:
    values = np.arange(2.0)
    capsule = dlpack.export_capsule(values, values.ctypes.data, (2,), (8,), 8, 2, dlpack.CUDA_PINNED)
    a = wp.from_dlpack(capsule)
    assert a.pinned
    assert a.list() == [0.0, 1.0]


@pytest.mark.parametrize("strides", [(-4,), (6,)])
def test_strides_that_consumers_cannot_take_are_refused(strides: tuple[int]) -> None:
    with pytest.raises(BufferError, match="stride"):
        dlpack.export_capsule(None, 4096, (3,), strides, 4, 2)


def test_negative_strides_come_in_but_do_not_go_out() -> None:
    a = wp.from_dlpack(np.arange(6.0).reshape(2, 3)[:, ::-1])
    np.testing.assert_array_equal(a.numpy(), [[2.0, 1.0, 0.0], [5.0, 4.0, 3.0]])
    for export in (wp.to_dlpack, np.from_dlpack):
        with pytest.raises(BufferError, match="negative stride"):
            export(a)
    np.testing.assert_array_equal(np.from_dlpack(a.contiguous()), a.numpy())


def test_too_many_dimensions() -> None:
    with pytest.raises(ArgumentError, match="5 dimensions of float64"):
        wp.from_dlpack(np.zeros((1, 1, 1, 1, 1)))


def test_scalars_without_dimensions() -> None:
    a = wp.from_dlpack(np.array(2.5))
    assert (a.shape, a.numpy().item()) == ((), 2.5)
    assert np.from_dlpack(a).shape == ()


# ---------------------------------------------------------------------------------------------------- lives


def test_a_capsule_is_used_once() -> None:
    capsule = wp.to_dlpack(wp.zeros(2))
    wp.from_dlpack(capsule)
    with pytest.raises(BufferError, match="used before"):
        wp.from_dlpack(capsule)


def test_what_is_no_capsule() -> None:
    with pytest.raises(ArgumentError, match="int"):
        wp.from_dlpack(3)
    with pytest.raises(ArgumentError, match="int"):
        wp.to_dlpack(3)  # type: ignore[arg-type]  # what is refused
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    with pytest.raises(BufferError, match="not a DLPack capsule"):
        wp.from_dlpack(new(4096, b"something", None))


@pytest.mark.parametrize("versioned", [False, True])
def test_unused_capsules_are_freed(versioned: bool) -> None:
    a = wp.zeros(2)
    alive = weakref.ref(a)
    capsule = a.__dlpack__(max_version=(1, 0) if versioned else None)
    del a
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("versioned", [False, True])
def test_memory_lives_as_long_as_the_last_array(versioned: bool) -> None:
    a = wp.array([1.0, 2.0])
    alive = weakref.ref(a)
    b = wp.from_dlpack(a.__dlpack__(max_version=(1, 0) if versioned else None))
    view = b[1:]
    del a, b
    gc.collect()
    assert alive() is not None
    assert view.list() == [2.0]
    del view
    gc.collect()
    assert alive() is None


def test_a_consumer_may_free_in_another_thread() -> None:
    a = wp.zeros(2)
    alive = weakref.ref(a)
    held = [np.from_dlpack(a)]
    del a
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert alive() is None


def test_memory_may_outlive_the_interpreter(capsules: str) -> None:
    program = f"""if True:
        import sys
        import numpy as np
        import warp as wp
        from warp._src.launch.program import executor
        if {capsules == "native"}:
            executor()
        a = wp.zeros(3)
        sys.held = [np.from_dlpack(a), a.__dlpack__(), a.__dlpack__(max_version=(1, 0)), wp.from_dlpack(np.zeros(3))]
        """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_refused_tensor_is_freed() -> None:
    a = wp.zeros((1, 1, 1, 1), dtype=wp.vec2)
    alive = weakref.ref(a)
    with pytest.raises(ArgumentError):
        wp.from_dlpack(a)
    del a
    gc.collect()
    assert alive() is None


def test_a_newer_major_version_is_refused_and_freed() -> None:
    a = wp.zeros(2)
    alive = weakref.ref(a)
    capsule = a.__dlpack__(max_version=(1, 0))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    ctypes.c_uint32.from_address(pointer(capsule, b"dltensor_versioned")).value = 2
    with pytest.raises(BufferError, match="newer major version"):
        wp.from_dlpack(capsule)
    del a, capsule
    gc.collect()
    assert alive() is None
