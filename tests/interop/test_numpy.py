"""NumPy, the array interfaces and buffers: conversions, types, and foreign arrays as arguments of kernels."""

from __future__ import annotations

import array as standard
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warp as wp
from warp._src.array.cuda_interface import read
from warp._src.runtime import device as devices
from warp._src.runtime import dlpack
from warp.errors import ArgumentError, DeviceError

SCALARS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@wp.kernel
def weigh(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i][0] + 10.0 * x[i][1] + 100.0 * x[i][2]


@wp.kernel
def double(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] + x[i]


class Interface:
    """Shows its memory through the array interface."""

    def __init__(self, values: Any) -> None:
        self.values = values

    @property
    def __array_interface__(self) -> Any:
        return self.values.__array_interface__


class Producer:
    """Shows its memory through DLPack, read-only memory too, which older versions of NumPy cannot."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, *, max_version: Any) -> Any:
        assert max_version[0] == 1
        values = self.values
        code = {"i": 0, "u": 1, "f": 2, "c": 5}[values.dtype.kind]
        flags = 0 if values.flags.writeable else dlpack.FLAG_READONLY
        layout = (values.ctypes.data, values.shape, values.strides, values.itemsize)
        return dlpack.export_capsule(values, *layout, code, flags=flags, versioned=True)

    def __dlpack_device__(self) -> Any:
        return (dlpack.CPU, 0)


class Values:
    """Gives an array, of which nobody knows whether it is a copy."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


class OnCuda:
    """Looks like an array of CuPy or Numba."""

    def __init__(self, values: Any, **changes: Any) -> None:
        self.values = values
        self.__cuda_array_interface__ = {**values.__array_interface__, "stream": 1, **changes}


# ---------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize("name", SCALARS)
def test_types_go_there_and_back(name: str) -> None:
    scalar = getattr(wp, name)
    assert wp.dtype_to_numpy(scalar) is np.dtype(name).type
    for given_type in (name, np.dtype(name), np.dtype(name).type, np.dtype(name).newbyteorder(">")):
        assert wp.dtype_from_numpy(given_type) is scalar


def test_python_types_and_bfloat16_have_counterparts() -> None:
    assert wp.dtype_to_numpy(float) is np.float32
    assert wp.dtype_from_numpy(float) is wp.float64
    assert wp.dtype_from_numpy(ml_dtypes.bfloat16) is wp.bfloat16
    assert wp.dtype_to_numpy(wp.bfloat16) is np.uint16


@pytest.mark.parametrize("dtype", ["complex64", "U3", "M8[s]", ml_dtypes.float8_e4m3fn, [("a", "f4")], "nonsense"])
def test_other_types_of_numpy_are_type_errors(dtype: Any) -> None:
    with pytest.raises(TypeError, match="dtype_from_numpy"):
        wp.dtype_from_numpy(dtype)


@pytest.mark.parametrize("dtype", [wp.vec3, wp.mat22, str, 3])
def test_other_types_of_warp_are_type_errors(dtype: Any) -> None:
    with pytest.raises(TypeError, match="dtype_to_numpy"):
        wp.dtype_to_numpy(dtype)


# ---------------------------------------------------------------------------------------------------- from_numpy


@pytest.mark.parametrize(
    ("shape", "dtype", "result"),
    [((4,), wp.float32, (4,)), ((4, 3), wp.vec3, (4,)), ((4, 2, 2), wp.mat22, (4,)), ((0,), wp.float32, (0,))],
)
def test_from_numpy_infers_vectors_and_matrices(shape: Any, dtype: Any, result: Any) -> None:
    a = wp.from_numpy(np.ones(shape, np.float32))
    assert (a.shape, a.dtype) == (result, dtype)


def test_from_numpy_takes_type_shape_and_gradient() -> None:
    a = wp.from_numpy(np.arange(6), dtype=float, shape=(2, 3), device="cpu", requires_grad=True)
    assert (a.shape, a.dtype, a.grad.shape) == ((2, 3), wp.float32, (2, 3))  # type: ignore[union-attr]  # not None here
    assert wp.from_numpy(np.arange(6.0), shape=(2, 3)).dtype is wp.float64


def test_from_numpy_copies_and_converts_byte_order() -> None:
    values = np.array([1.0, 2.0], ">f4")
    a = wp.from_numpy(values)
    values[:] = 0.0
    assert (a.dtype, a.list()) == (wp.float32, [1.0, 2.0])
    b = wp.from_numpy(np.array([1.0, 2.5], ml_dtypes.bfloat16))
    assert b.dtype is wp.bfloat16


@pytest.mark.parametrize("values", [np.zeros(2, complex), np.array(["a"]), np.zeros(2, "M8[s]"), [1.0], None])
def test_from_numpy_raises_runtime_errors(values: Any) -> None:
    with pytest.raises(RuntimeError):
        wp.from_numpy(values)


def test_arrays_are_arrays_to_numpy() -> None:
    a = wp.array([[1.0, 2.0, 3.0]], dtype=wp.vec3)
    view = np.asarray(a)
    assert view.shape == (1, 3)
    a.fill_(4.0)
    np.testing.assert_array_equal(view, [[4.0, 4.0, 4.0]])
    del a
    gc.collect()
    np.testing.assert_array_equal(view, [[4.0, 4.0, 4.0]])


@pytest.mark.parametrize("wrap", [Interface, memoryview, lambda values: values])
def test_memory_is_shared_without_copy(wrap: Any) -> None:
    values = np.arange(3.0)
    a = wp.array(wrap(values), copy=False)
    values[0] = 7.0
    assert a.list() == [7.0, 1.0, 2.0]


# ---------------------------------------------------------------------------------------------------- launches


@pytest.mark.parametrize("wrap", [np.asarray, Interface, Producer, memoryview])
def test_foreign_arrays_are_read_and_written_in_place(wrap: Any) -> None:
    rows = np.arange(50, dtype=np.float32).reshape(5, 10)[:, 4:7]
    y = np.zeros(5, np.float32)
    wp.launch(weigh, dim=5, inputs=[wrap(rows), wrap(y)])
    np.testing.assert_array_equal(y, rows @ np.array([1.0, 10.0, 100.0], np.float32))


def test_buffers_of_the_standard_library() -> None:
    x, y = standard.array("d", [1.0, 2.0]), standard.array("d", [0.0, 0.0])
    wp.launch(double, dim=2, inputs=[x, y])
    assert y.tolist() == [2.0, 4.0]


@given(
    st.sampled_from([name for name in SCALARS if name != "bool"]),
    st.sampled_from([np.asarray, Interface, Producer]),
    st.integers(1, 3),
    st.integers(1, 5),
)
@settings(max_examples=40, deadline=None)
def test_generic_kernels_take_foreign_arrays(name: str, wrap: Any, step: int, count: int) -> None:
    x = np.arange(count * step).astype(name)[::step]
    y = np.zeros(2 * count, name)[::2]
    wp.launch(double, dim=count, inputs=[wrap(x), wrap(y)])
    np.testing.assert_array_equal(y, x + x)


def test_what_may_be_a_copy_is_read_but_not_written() -> None:
    x, y = np.arange(3.0), np.zeros(3)
    wp.launch(double, dim=3, inputs=[Values(x), y])
    np.testing.assert_array_equal(y, [0.0, 2.0, 4.0])
    with pytest.raises(
        ArgumentError, match=r"parameter .y. is written by the kernel, but .* does not say that it shares"
    ):
        wp.launch(double, dim=3, inputs=[x, Values(y)])


@pytest.mark.parametrize("wrap", [np.asarray, Interface, Producer, memoryview])
def test_read_only_memory_is_not_written(wrap: Any) -> None:
    x, y = np.arange(3.0), np.zeros(3)
    y.flags.writeable = False
    wp.launch(double, dim=3, inputs=[wrap(y), x])
    with pytest.raises(ArgumentError, match="'y' is written by the kernel, but the memory of the array is read-only"):
        wp.launch(double, dim=3, inputs=[x, wrap(y)])


@pytest.mark.parametrize("wrap", [np.asarray, Interface, Producer])
@pytest.mark.parametrize(
    "values", [np.zeros((3, 3)), np.zeros((3, 2), np.float32), np.zeros((3, 6), np.float32)[:, ::2]]
)
def test_what_does_not_fit_is_refused(wrap: Any, values: Any) -> None:
    with pytest.raises(ArgumentError, match="parameter 'x'"):
        wp.launch(weigh, dim=3, inputs=[wrap(values), np.zeros(3, np.float32)])


@pytest.mark.parametrize("value", [3, "text", [1.0], {}, np.zeros(3, ">f8"), np.zeros(3, complex)])
def test_what_is_no_array_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentError):
        wp.launch(weigh, dim=1, inputs=[np.zeros((1, 3), np.float32), value])


def test_foreign_memory_lives_as_long_as_a_launch_is_kept() -> None:
    values = np.arange(3.0)
    holder = Interface(values)
    alive = weakref.ref(values)
    y = wp.zeros(3, dtype=wp.float64)
    command = wp.launch(double, dim=3, inputs=[holder, y], record_cmd=True)
    del values, holder
    gc.collect()
    command.launch()  # type: ignore[union-attr]  # not None here
    assert y.list() == [0.0, 2.0, 4.0]
    assert alive() is not None


# ---------------------------------------------------------------------------------------------------- CUDA


def test_arrays_on_another_device_are_named_with_both_devices() -> None:
    x = OnCuda(np.arange(3.0))
    with pytest.raises(ArgumentError, match="parameter 'x': the array is on device 'cuda', the launch on 'cpu'"):
        wp.launch(double, dim=3, inputs=[x, np.zeros(3)])
    with pytest.raises(DeviceError, match="CUDA is not available"):
        wp.array(x)


def test_the_cuda_array_interface_is_read() -> None:
    cuda = devices.Device("cuda:0", "stand-in")
    values = np.arange(30, dtype=np.float32).reshape(5, 6)[:, 2:5]
    a = read(wp.array, OnCuda(values), wp.vec3, cuda)
    assert (a.shape, a.strides, a.ptr, a.dtype) == ((5,), (24,), values.ctypes.data, wp.vec3)
    assert a.device is cuda
    b = read(wp.array, OnCuda(values), Any, cuda)
    assert (b.shape, b.dtype) == ((5, 3), wp.float32)
    assert read(wp.array, OnCuda(values, data=(4096, True)), Any, cuda).is_readonly
    assert read(wp.array, OnCuda(values, data=(0, False), shape=(0, 3), strides=None), Any, cuda).size == 0
    for wrong in ({"mask": values}, {"typestr": ">f4"}, {"typestr": "<c8"}):
        with pytest.raises(ArgumentError):
            read(wp.array, OnCuda(values, **wrong), Any, cuda)
