"""Arrays on the host: making, viewing, indexing, gradients and the descriptor."""

from __future__ import annotations

import gc
import struct
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warp as wp
from warp._src.types import ArrayType
from warp.errors import ArgumentError

DESCRIPTOR = struct.Struct("=QQ4q4q4qii")


def test_annotations() -> None:
    assert wp.array(dtype=float) == wp.array[float] == ArrayType(wp.float32, 1)
    assert wp.array(dtype=wp.vec3, ndim=2) == wp.array2d(dtype=wp.vec3) == wp.array2d[wp.vec3] == ArrayType(wp.vec3, 2)
    assert wp.array4d(dtype=int).ndim == 4
    assert wp.indexedarray2d(dtype=int).ndim == wp.indexedarray2d[int].ndim == 2


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        ([1.0, 2.0], wp.float64, (2,)),
        ([[1, 2], [3, 4]], wp.int64, (2, 2)),
        ([True, False], wp.bool, (2,)),
        (np.zeros((2, 3), np.float32), wp.float32, (2, 3)),
        ([wp.vec3(1, 2, 3)], wp.vec3, (1,)),
        (np.zeros(3, ">f4"), wp.float32, (3,)),
    ],
)
def test_type_of_data_is_kept(data: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    made = wp.array(data)
    assert (made.dtype, made.shape) == (dtype, shape)
    np.testing.assert_array_equal(made.numpy().reshape(-1), np.asarray(data).reshape(-1))


@pytest.mark.parametrize("shape", [(4, 3), (12,), (2, 2, 3)])
def test_components_become_elements(shape: tuple[int, ...]) -> None:
    data = np.arange(12.0).reshape(shape)
    made = wp.array(data, dtype=wp.vec3)
    assert made.size == 4
    np.testing.assert_array_equal(made.numpy().reshape(-1), np.arange(12))


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: wp.array("abc"), "data"),
        (lambda: wp.array([[1, 2], [3]]), "data"),
        (lambda: wp.array([1, 2, 3], shape=(2, 2)), "shape"),
        (lambda: wp.array(np.zeros((2, 4)), dtype=wp.vec3), "vec3"),
        (lambda: wp.array([1.0], dtype=object), "dtype"),
        (lambda: wp.array(np.zeros(3), dtype=wp.float32, copy=False), "copy=True"),
        (lambda: wp.array(ptr=8), "shape"),
        (lambda: wp.array([[1, 2]], ndim=1), "ndim"),
        (lambda: wp.zeros((1, 2, 3, 4, 5)), "4"),
        (lambda: wp.zeros(-1), "negative"),
        (lambda: wp.zeros("x"), "shape"),
        (lambda: wp.full(2, 1.5, dtype=int), "value"),
        (lambda: wp.zeros(2, device="mars"), "mars"),
        (lambda: wp.zeros(2, strides=(-4,)), "strides"),
    ],
)
def test_errors_name_the_argument(make: Callable[[], Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        make()


def test_creation() -> None:
    assert wp.zeros(shape=7, dtype=float).shape == (7,)
    assert wp.zeros([2, 3]).shape == (2, 3)
    assert wp.full(2, wp.vec3(1, 2, 3)).dtype is wp.vec3
    np.testing.assert_array_equal(wp.full((2,), 5).numpy(), [5, 5])
    np.testing.assert_array_equal(wp.ones(2, dtype=wp.vec2).numpy(), np.ones((2, 2)))
    source = wp.zeros((2, 2), dtype=wp.float64, requires_grad=True)
    for made in (wp.zeros_like(source), wp.empty_like(source), wp.ones_like(source), wp.full_like(source, 2.0)):
        assert (made.shape, made.dtype, made.requires_grad) == ((2, 2), wp.float64, True)
    assert not wp.zeros_like(source, requires_grad=False).requires_grad
    assert wp.from_numpy(np.zeros((3, 2), np.float32)).dtype is wp.vec2
    assert wp.from_numpy(np.zeros((3, 2, 2))).dtype is wp.mat22d
    assert wp.from_numpy(np.zeros((3, 2)), dtype=float).shape == (3, 2)


def test_custom_strides_get_enough_memory() -> None:
    for strides in ((4, 12), (16, 12), (40, 4)):
        made = wp.zeros((3, 3), strides=strides, dtype=wp.int32)
        assert made.capacity >= 2 * sum(strides) + 4
        values = np.arange(9).reshape(3, 3)
        made.assign(values)
        np.testing.assert_array_equal(made.numpy(), values)


def test_numpy_view_is_live_and_outlives_the_array() -> None:
    made = wp.array(np.arange(1000, dtype=np.float32))
    view = made.numpy()
    made.fill_(3.0)
    del made
    gc.collect()
    assert (view == 3.0).all()


def test_shared_memory_keeps_its_source() -> None:
    source = np.full(1000, 7.0, np.float32)
    made = wp.array(source, dtype=float, copy=False)
    source[0] = 1.0
    del source
    gc.collect()
    np.testing.assert_array_equal(made.numpy()[:2], [1, 7])


def test_memory_at_an_address() -> None:
    source = np.arange(6, dtype=np.float32)
    released = []

    def release(ptr: int, capacity: int) -> None:
        released.append((ptr, capacity))

    address = source.ctypes.data
    made = wp.array(ptr=address, dtype=float, shape=(2, 3), deleter=release)
    np.testing.assert_array_equal(made.numpy(), source.reshape(2, 3))
    view = made.numpy()
    del made
    gc.collect()
    assert not released
    del view
    gc.collect()
    assert released == [(address, 24)]
    assert wp.from_ptr(address, 6, dtype=float).numpy()[5] == 5.0


def test_readonly_memory() -> None:
    source = np.zeros(3, np.float32)
    source.flags.writeable = False
    made = wp.array(source, copy=False)
    assert made.is_readonly
    assert DESCRIPTOR.unpack(made.descriptor())[-1] == 1
    assert not made.numpy().flags.writeable
    with pytest.raises(ArgumentError, match="read-only"):
        made.fill_(1.0)


def test_descriptor() -> None:
    made = wp.zeros((2, 3), dtype=wp.vec3)
    fields = DESCRIPTOR.unpack(made.descriptor())
    assert len(made.descriptor()) == 120
    assert fields[:2] == (made.ptr, 0)
    assert fields[2:6] == (2, 3, 1, 1)
    assert fields[6:10] == (36, 12, 0, 0)
    assert fields[14:] == (2, 0)
    made.requires_grad = True
    fields = DESCRIPTOR.unpack(made.descriptor())
    assert fields[1] == made.grad.ptr
    assert fields[10:12] == (36, 12)
    assert made.descriptor() is made.descriptor()
    view = made[1]
    before = view.descriptor()
    made.grad = wp.ones((2, 3), dtype=wp.vec3)
    assert view.descriptor() != before
    assert DESCRIPTOR.unpack(view.descriptor())[1] == made.grad.ptr + 36


def test_gradient() -> None:
    made = wp.zeros(3, dtype=float)
    assert made.grad is None
    made.requires_grad = True
    assert made.grad is made.grad
    np.testing.assert_array_equal(made.grad.numpy(), np.zeros(3))
    view = made[1:]
    made.grad.fill_(2.0)
    np.testing.assert_array_equal(view.grad.numpy(), [2, 2])
    assert not made.grad.requires_grad
    with pytest.raises(ArgumentError, match=r"shape=\(2,\)"):
        made.grad = wp.zeros(2, dtype=float)
    with pytest.raises(ArgumentError, match="int32"):
        made.grad = wp.zeros(3, dtype=int)
    replacement = wp.ones(3, dtype=float)
    made.grad = replacement
    np.testing.assert_array_equal(view.grad.numpy(), [1, 1])
    made.grad = None
    assert not made.requires_grad
    assert not view.requires_grad
    reference = weakref.ref(wp.zeros(3, dtype=float, requires_grad=True).grad)
    gc.collect()
    assert reference() is None


def test_indexing() -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    made = wp.array(values, copy=False)
    for key in [0, -1, (1, 2), slice(1, None), (slice(None), 1), (..., 2), (0, ..., slice(1, 4, 2)), (1, slice(0, 2))]:
        np.testing.assert_array_equal(made[key].numpy(), values[key])
    assert made[1, 2, 3] == 23.0
    assert type(made[1, 2, 3]) is float
    made[0, 0] = 5.0
    made[1, :, 1] = [7, 8, 9]
    made[1, 0, 0] = -1.0
    np.testing.assert_array_equal(values[0, 0], 5)
    np.testing.assert_array_equal(values[1, :, 1], [7, 8, 9])
    assert values[1, 0, 0] == -1


@pytest.mark.parametrize("key", [(0, 0), 10, -7, slice(None, None, 0), 1.5, None, (..., ...)])
def test_wrong_indices(key: Any) -> None:
    with pytest.raises(IndexError, match="index"):
        wp.zeros(6, dtype=float)[key]


def test_elements_are_host_values() -> None:
    made = wp.array([[1, 2, 3], [4, 5, 6]], dtype=wp.vec3)
    assert made[1] == wp.vec3(4, 5, 6)
    assert made.list() == [wp.vec3(1, 2, 3), wp.vec3(4, 5, 6)]
    assert list(made) == made.list()
    assert wp.array([3, 4], dtype=wp.int64).list() == [3, 4]
    made[0] = wp.vec3(7, 8, 9)
    np.testing.assert_array_equal(made.numpy()[0], [7, 8, 9])


def test_structs_as_elements() -> None:
    @wp.struct
    class Particle:
        mass: float
        position: wp.vec3

    particle = Particle()
    particle.mass = 2.0
    made = wp.array([particle, particle], dtype=Particle)
    assert made.numpy()["mass"].tolist() == [2.0, 2.0]
    assert made[1].mass == 2.0
    made.zero_()
    assert made.list()[0].mass == 0.0
    assert wp.full(2, particle).numpy()["mass"].tolist() == [2.0, 2.0]


def test_views() -> None:
    made = wp.array(np.arange(6), dtype=float, requires_grad=True).reshape((2, 3))
    assert made.reshape(-1).shape == made.flatten().shape == (6,)
    np.testing.assert_array_equal(made.transpose().numpy(), np.arange(6).reshape(2, 3).T)
    assert made.transpose().strides == (4, 12)
    assert not made.transpose().is_contiguous
    with pytest.raises(ArgumentError, match="contiguous"):
        made.transpose().flatten()
    np.testing.assert_array_equal(made.transpose().contiguous().flatten().numpy(), [0, 3, 1, 4, 2, 5])
    assert made.view(wp.vec3).shape == (2,)
    assert made.view(wp.vec3).grad.ptr == made.grad.ptr
    assert made.view(wp.vec3).view(float).shape == (2, 3)
    assert made.view(wp.int32).dtype is wp.int32
    assert not made.view(wp.int32).requires_grad
    assert made.to("cpu") is made
    np.testing.assert_array_equal(made[:, 1].view(wp.uint32).numpy(), np.array([1, 4], np.float32).view(np.uint32))
    with pytest.raises(ArgumentError, match="vec4"):
        made.view(wp.vec4)


def test_empty_arrays() -> None:
    made = wp.zeros(0, dtype=wp.vec2, requires_grad=True)
    assert made.numpy().shape == made.grad.numpy().shape == (0, 2)
    assert wp.zeros((1, 0), dtype=wp.vec2).numpy().shape == (1, 0, 2)
    assert wp.array(np.zeros((0, 3), np.float32), dtype=wp.vec3).shape == (0,)
    assert wp.clone(made).shape == wp.from_numpy(np.zeros(0, np.float32)).shape == (0,)
    assert wp.array([], dtype=float).shape == (0,)
    made.zero_()
    assert np.from_dlpack(wp.zeros(0, dtype=float)).shape == (0,)


def test_printing() -> None:
    made = wp.array([5.0, 7.0, 9.0], dtype=float)
    assert str(made) == "[5. 7. 9.]"
    assert repr(made) == "array(shape=(3,), dtype=float32)"
    assert np.asarray(made).base is not None
    assert len(made) == 3


def test_assign() -> None:
    made = wp.zeros((2, 3), dtype=float)
    made.assign([[1, 2, 3], [4, 5, 6]])
    made.assign(np.arange(6.0))
    np.testing.assert_array_equal(made.numpy(), np.arange(6).reshape(2, 3))
    with pytest.raises(ArgumentError, match="src"):
        made.assign(np.zeros(5))
    with pytest.raises(ArgumentError, match="fill_"):
        made.assign(3.0)


def test_indexed_arrays() -> None:
    data = wp.array([[1, 2], [3, 4], [5, 6]], dtype=float, requires_grad=True)
    rows = wp.array([2, 0], dtype=int)
    seen = wp.indexedarray2d(data, [rows, None])
    np.testing.assert_array_equal(seen.numpy(), [[5, 6], [1, 2]])
    assert (seen.shape, seen.dtype, len(seen.descriptor())) == ((2, 2), wp.float32, 184)
    np.testing.assert_array_equal(data[rows].numpy(), seen.numpy())
    assert seen.grad.data is data.grad
    with pytest.raises(ArgumentError, match="outside"):
        wp.indexedarray(data, [wp.array([3], dtype=int)])
    with pytest.raises(ArgumentError, match="int32"):
        wp.indexedarray(data, [wp.array([1.0], dtype=float)])


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (wp.uint64, [2**64 - 1, 1]),
        (wp.uint64, [[2**64 - 1], [3]]),
        (wp.int64, [2**63 - 1, -(2**63)]),
        (wp.uint64, [2**63, 0]),
        (wp.types.vector(2, wp.uint64), [[2**64 - 1, 2**53 + 1]]),
    ],
)
def test_integers_of_lists_keep_all_digits(dtype: Any, values: Any) -> None:
    assert wp.array(values, dtype=dtype).numpy().tolist() == values


def test_no_memory_is_at_address_zero() -> None:
    with pytest.raises(ArgumentError, match="ptr must be the address of 24 bytes, got 0"):
        wp.array(ptr=0, shape=3, dtype=wp.float64)
    assert wp.array(ptr=0, shape=0, dtype=wp.float64).size == 0
