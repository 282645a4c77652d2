"""Numba works on arrays of Warp, and kernels on arrays of Numba: on the CPU, and by the CUDA array interface."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def saxpy(x: wp.array(dtype=Any), y: wp.array(dtype=Any), a: Any):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def lengths(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.length(x[i])


@numba.njit
def double_in_place(values: Any) -> None:
    for i in range(values.shape[0]):
        values[i] *= 2


@numba.njit
def sums_of_rows(values: Any) -> Any:
    found = np.zeros(values.shape[0], values.dtype)
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            found[i] += values[i, j]
    return found


TYPES = [wp.int8, wp.uint16, wp.int32, wp.int64, wp.float32, wp.float64]


@given(dtype=st.sampled_from(TYPES), size=st.integers(0, 20), step=st.integers(1, 3))
def test_a_jitted_function_changes_the_memory_of_an_array(dtype: Any, size: int, step: int) -> None:
    a = wp.array(np.arange(size), dtype=dtype)
    double_in_place(a[::step].numpy())
    expected = np.arange(size)
    expected[::step] *= 2
    assert a.numpy().tolist() == expected.tolist()


def test_a_jitted_function_sees_vectors_as_rows() -> None:
    a = wp.array(np.arange(6.0).reshape(2, 3), dtype=wp.vec3)
    assert sums_of_rows(a.numpy()).tolist() == [3.0, 12.0]


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_kernels_take_what_a_jitted_function_returns(dtype: Any) -> None:
    x = sums_of_rows(np.arange(6).reshape(3, 2).astype(dtype))
    y = np.ones(3, dtype)
    wp.launch(saxpy, dim=3, inputs=[x, y, wp.dtype_from_numpy(dtype)(2)])
    assert y.tolist() == [3.0, 11.0, 19.0]


def test_an_array_itself_is_no_type_of_numba() -> None:
    with pytest.raises(numba.TypingError):
        double_in_place(wp.zeros(3))


def test_a_vectorised_function_takes_the_view_of_an_array() -> None:
    @numba.vectorize
    def square(x: Any) -> Any:
        return x * x

    a = wp.array([1.0, 2.0, 3.0], dtype=wp.float64)
    assert square(a.numpy()).tolist() == [1.0, 4.0, 9.0]


class OnDevice:
    """An array of CuPy or Numba as far as the CUDA array interface tells: memory whose device it does not name."""

    def __init__(self, values: Any, **changes: Any) -> None:
        self._values = values
        interface = values.__array_interface__
        self.__cuda_array_interface__ = {
            "shape": interface["shape"],
            "typestr": interface["typestr"],
            "data": interface["data"],
            "strides": interface["strides"],
            "version": 3,
            "stream": None,
            **changes,
        }


@pytest.mark.parametrize("place", [0, 1])
def test_memory_of_a_gpu_is_refused_in_a_launch_on_the_cpu(place: int) -> None:
    values = np.ones(3, np.float32)
    arrays = [values, values.copy()]
    arrays[place] = OnDevice(arrays[place])
    name = "xy"[place]
    with pytest.raises(ArgumentError, match=f"parameter '{name}': the array is on device 'cuda.*the launch on 'cpu'"):
        wp.launch(saxpy, dim=3, inputs=[*arrays, 1.0])
    assert values.tolist() == [1.0] * 3


def test_arrays_of_the_cpu_do_not_claim_to_be_on_a_gpu() -> None:
    from numba import cuda

    a = wp.zeros(3)
    assert not hasattr(a, "__cuda_array_interface__")
    assert not cuda.is_cuda_array(a)


def test_the_arrays_of_numbas_simulator_are_arrays_of_the_cpu() -> None:
    program = """if True:
        import numpy as np
        import warp as wp
        from numba import cuda


        @cuda.jit
        def double(values):
            i = cuda.grid(1)
            if i < values.shape[0]:
                values[i] *= 2


        a = wp.array([1.0, 2.0, 3.0], dtype=float)
        double[1, 32](a.numpy())
        print(a.list())
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "[2.0, 4.0, 6.0]", done.stderr
