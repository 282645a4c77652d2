"""Arrays in the memory of stand-in devices, which the host cannot touch: made, copied, filled, freed."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from tests.cuda.fake_driver import FakeDriver

import warp as wp
from warp.errors import ArgumentError, DeviceError

DTYPES = [wp.int8, wp.uint16, wp.float16, wp.bfloat16, wp.float32, wp.float64, wp.vec3, wp.mat44d, wp.quatf]


@wp.struct
class Pair:
    weight: wp.float64
    place: wp.vec3
    kind: wp.int8


@wp.kernel
def increase(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


def numbers(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_values_come_back_as_they_went(dtype: Any, driver: FakeDriver) -> None:
    host = wp.zeros((3, 4), dtype=dtype)
    host.numpy().view(np.uint8)[...] = np.random.default_rng(3).integers(0, 127, host.numpy().view(np.uint8).shape)
    there = wp.array(host, device="cuda")
    assert (there.device, there.dtype, there.shape) == (wp.get_device("cuda:0"), dtype, (3, 4))
    assert there.numpy().tobytes() == host.numpy().tobytes()
    view, host_view = there[1:, ::2], host[1:, ::2]
    assert view.numpy().tobytes() == np.ascontiguousarray(host_view.numpy()).tobytes()
    assert wp.clone(view).numpy().tobytes() == np.ascontiguousarray(host_view.numpy()).tobytes()
    assert (
        view.transpose().contiguous().numpy().tobytes() == np.ascontiguousarray(host_view.transpose().numpy()).tobytes()
    )
    assert (str(there), there.list()) == (str(host), host.list())


def test_arrays_are_made_with_the_values_asked_for(driver: FakeDriver) -> None:
    with wp.ScopedDevice("cuda:1"):
        made = [
            wp.zeros(3),
            wp.ones((2, 2), dtype=int),
            wp.full(2, wp.vec3(1.0, 2.0, 3.0)),
            wp.full(2, 7, dtype=wp.int8),
        ]
        made += [wp.full_like(made[1], 4), wp.zeros_like(made[2]), wp.from_numpy(numbers(2, 3)), wp.array([1.5])]
        assert all(array.device == "cuda:1" for array in made)
    values = [array.numpy().ravel().tolist() for array in made]
    assert values == [[0] * 3, [1] * 4, [1, 2, 3] * 2, [7, 7], [4] * 4, [0] * 6, [0, 1, 2, 3, 4, 5], [1.5]]
    assert wp.empty((0, 3), device="cuda").numpy().shape == (0, 3)
    assert wp.zeros(3, strides=(16,), device="cuda").list() == [0, 0, 0]
    with pytest.raises(ArgumentError, match="cannot be shared with device 'cuda:0'"):
        wp.array(numbers(3), device="cuda", copy=False)


def test_elements_slices_and_filling(driver: FakeDriver) -> None:
    x = wp.array(numbers(4, 5), device="cuda")
    expected = numbers(4, 5)
    assert x[2, 3] == 13.0
    x[1] = 7.0
    x[2:, 1:4:2] = wp.array(np.full((2, 2), 9.0, np.float32), device="cuda")
    x[0, 1:3] = [5.0, 6.0]
    x[3, 4] = 2.0
    x[:, 0].fill_(-1.0)
    expected[1], expected[2:, 1:4:2], expected[0, 1:3], expected[3, 4], expected[:, 0] = 7, 9, [5, 6], 2, -1
    np.testing.assert_array_equal(x.numpy(), expected)
    x.assign(numbers(4, 5) + 1)
    np.testing.assert_array_equal(x.numpy(), numbers(4, 5) + 1)
    x[::2].zero_()
    assert x.numpy()[::2].any() == 0
    np.testing.assert_array_equal(x.reshape((2, 10)).numpy(), x.numpy().reshape(2, 10))
    np.testing.assert_array_equal(x[:, 2:].view(wp.int32).numpy(), x.numpy()[:, 2:].view(np.int32))
    with pytest.raises(ArgumentError, match="reshaped in place"):
        x[:, 1:3].reshape((8,))


def test_structs(driver: FakeDriver) -> None:
    pairs = wp.array([Pair(weight=2.0, place=wp.vec3(1.0, 2.0, 3.0), kind=4)] * 3, dtype=Pair, device="cuda")
    assert (pairs[1].weight, pairs[1].place, pairs[1].kind) == (2.0, wp.vec3(1.0, 2.0, 3.0), 4)
    pairs.fill_(Pair(weight=5.0))
    assert pairs.numpy()["weight"].tolist() == [5.0] * 3
    source = wp.clone(pairs, requires_grad=True)
    with wp.Tape() as tape:
        copy = wp.clone(source)
    gradient = wp.array([Pair(weight=1.0, place=wp.vec3(1.0, 1.0, 2.0), kind=1)] * 3, dtype=Pair, device="cuda")
    for calls in (1, 2):
        tape.backward(grads={copy: gradient})
        assert source.grad.numpy()["weight"].tolist() == [calls] * 3
        assert source.grad.numpy()["place"].tolist() == [[calls, calls, 2 * calls]] * 3


@pytest.mark.parametrize("there", ["cpu", "cuda:0", "cuda:1"])
@pytest.mark.parametrize("here", ["cpu", "cuda:0", "cuda:1"])
def test_copies_between_any_two_devices(here: str, there: str, driver: FakeDriver) -> None:
    source = wp.array(numbers(3, 4), device=here, requires_grad=True)
    target = wp.zeros((3, 4), device=there)
    wp.copy(target, source)
    np.testing.assert_array_equal(target.numpy(), numbers(3, 4))
    wp.copy(target[:, ::2], source[:, 1::2])
    np.testing.assert_array_equal(target.numpy()[:, ::2], numbers(3, 4)[:, 1::2])
    wp.copy(target.transpose(), source, dest_offset=1, src_offset=5, count=3)
    np.testing.assert_array_equal(target.transpose().numpy().ravel()[1:4], [5, 6, 7])
    assert source.to(there).device == there


@pytest.mark.parametrize("there", ["cpu", "cuda:0", "cuda:1"])
@pytest.mark.parametrize("here", ["cpu", "cuda:0", "cuda:1"])
def test_gradients_go_back_over_copies(here: str, there: str, driver: FakeDriver) -> None:
    x = wp.array(numbers(3, 4), device=here, requires_grad=True)
    with wp.Tape() as tape:
        y = wp.clone(x, device=there)
        z = wp.zeros((3, 4), device=there, requires_grad=True)
        wp.copy(z.transpose(), y, dest_offset=2, src_offset=5, count=4)
    for calls in (1, 2):
        tape.backward(grads={z: wp.ones_like(z)})
        np.testing.assert_array_equal(x.grad.numpy().ravel(), calls * np.isin(np.arange(12), [5, 6, 7, 8]))


@pytest.mark.parametrize("dtype", [wp.float16, wp.bfloat16, wp.float32, wp.float64], ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_gradients_of_every_precision_add_up(device: str, dtype: Any, driver: FakeDriver) -> None:
    x = wp.array([1.0, 2.0], dtype=dtype, device=device, requires_grad=True)
    with wp.Tape() as tape:
        y, z = wp.clone(x), wp.clone(x)
    tape.backward(grads={y: wp.array([1.0, 2.0], dtype=dtype, device=device), z: wp.ones_like(z)})
    assert x.grad.list() == [2.0, 3.0]


def test_overlapping_copies(driver: FakeDriver) -> None:
    x = wp.array(numbers(6), device="cuda")
    wp.copy(x[1:], x[:-1])
    assert x.list() == [0, 0, 1, 2, 3, 4]
    x.assign(x[::-1])
    assert x.list() == [4, 3, 2, 1, 0, 0]


def test_pinned_memory_is_copied_without_waiting(driver: FakeDriver) -> None:
    wp.get_device("cuda")
    pinned = wp.array(numbers(4), pinned=True)
    assert pinned.pinned and pinned.device == "cpu" and pinned.numpy().tolist() == [0, 1, 2, 3]
    there = wp.zeros(4, device="cuda")
    wp.copy(there, pinned)
    assert not wp.get_stream("cuda").is_complete
    back = wp.zeros(4, pinned=True)
    wp.copy(back, there)
    assert back.numpy().tolist() == [0, 0, 0, 0]
    wp.synchronize()
    assert back.numpy().tolist() == [0, 1, 2, 3]
    wp.launch(increase, 4, inputs=[pinned], device="cuda")
    wp.synchronize()
    assert pinned.numpy().tolist() == [1, 2, 3, 4]
    assert wp.zeros_like(pinned).pinned and wp.clone(pinned).pinned
    del pinned, back
    gc.collect()
    assert len(driver._host_memory) <= 1  # the place where kernels report faults


def test_nothing_is_left_behind(driver: FakeDriver) -> None:
    x = wp.zeros(1000, device="cuda", requires_grad=True)
    for _ in range(3):
        with wp.Tape() as tape:
            y = wp.clone(x)
            wp.launch(increase, 1000, inputs=[y], device="cuda")
        tape.backward(grads={y: wp.ones_like(y)})
    assert driver.live_bytes() >= 4000
    del x, y, tape
    gc.collect()
    assert driver.live_bytes() == 0


def test_memory_of_others_is_given_back_through_their_deleter(driver: FakeDriver) -> None:
    x = wp.array(numbers(4), device="cuda")
    freed = []
    seen = wp.array(
        ptr=x.ptr, shape=4, dtype=float, device="cuda", capacity=16, deleter=lambda *block: freed.append(block)
    )
    assert seen.numpy().tolist() == [0, 1, 2, 3]
    address = x.ptr
    del seen
    gc.collect()
    assert freed == [(address, 16)]


def test_too_little_memory_is_an_error_that_says_how_much(driver: FakeDriver) -> None:
    driver.limit = 1000
    with pytest.raises(DeviceError, match=r"2000 bytes .* 'cuda:0': .*OUT_OF_MEMORY \(2\).*free arrays"):
        wp.zeros(500, device="cuda")
    assert wp.zeros(200, device="cuda").size == 200


def test_without_a_pool(driver: FakeDriver) -> None:
    assert wp.is_mempool_supported("cuda") and wp.is_mempool_enabled("cuda")
    with wp.ScopedMempool("cuda", False):
        assert not wp.is_mempool_enabled("cuda")
        x = wp.array(numbers(4), device="cuda")
        wp.launch(increase, 4, inputs=[x], device="cuda")
        assert x.list() == [1, 2, 3, 4]
        del x
    gc.collect()
    assert driver.live_bytes() == 0
    assert wp.is_mempool_enabled("cuda")
    with pytest.raises(DeviceError, match="'cpu' is no CUDA device"):
        wp.set_mempool_enabled("cpu", True)


def test_thresholds_and_use_of_the_pool(driver: FakeDriver) -> None:
    wp.set_mempool_release_threshold("cuda", 0.5)
    assert wp.get_mempool_release_threshold("cuda") == driver.limit // 2
    wp.set_mempool_release_threshold("cuda", 1024)
    assert wp.get_mempool_release_threshold("cuda") == 1024
    before = wp.get_mempool_used_mem_current("cuda")
    x = wp.zeros(250, device="cuda")
    assert wp.get_mempool_used_mem_current("cuda") == before + 1000
    del x
    gc.collect()
    wp.synchronize()
    assert wp.get_mempool_used_mem_current("cuda") == before
    assert wp.get_mempool_used_mem_high("cuda") >= before + 1000
    assert wp.get_device("cuda").total_memory >= wp.get_device("cuda").free_memory > 0
    with pytest.raises(ArgumentError, match="negative"):
        wp.set_mempool_release_threshold("cuda", -1)


def test_kernels_use_the_memory_of_peers_if_they_may(driver: FakeDriver) -> None:
    x = wp.array(numbers(3), device="cuda:1")
    with pytest.raises(ArgumentError, match="the array is on device 'cuda:1', the launch on 'cuda:0'"):
        wp.launch(increase, 3, inputs=[x], device="cuda:0")
    assert wp.is_mempool_access_supported("cuda:1", "cuda:0") and not wp.is_mempool_access_enabled("cuda:1", "cuda:0")
    wp.synchronize()
    with wp.ScopedMempoolAccess("cuda:1", "cuda:0", True):
        wp.launch(increase, 3, inputs=[x], device="cuda:0")
        wp.synchronize()
    assert x.list() == [1, 2, 3]
    assert not wp.is_mempool_access_enabled("cuda:1", "cuda:0")
    with wp.ScopedMempool("cuda:1", False), wp.ScopedPeerAccess("cuda:1", "cuda:0", True):
        assert wp.is_peer_access_enabled("cuda:1", "cuda:0")
        y = wp.array(numbers(3), device="cuda:1")
        wp.launch(increase, 3, inputs=[y], device="cuda:0")
        wp.synchronize()
        assert y.list() == [1, 2, 3]
        del y
    assert not wp.is_peer_access_supported("cpu", "cuda:0")
    with pytest.raises(DeviceError, match="is no CUDA device"):
        wp.set_peer_access_enabled("cuda:0", "cpu", True)


def test_indexed_arrays(driver: FakeDriver) -> None:
    x = wp.array(numbers(5), device="cuda")
    chosen = x[wp.array([3, 1], dtype=int, device="cuda")]
    assert chosen.numpy().tolist() == [3, 1]
    assert chosen.contiguous().device == "cuda:0"
    assert wp.indexedarray(x, [[4, 0]]).list() == [4, 0]
    with pytest.raises(ArgumentError, match="positions outside"):
        wp.indexedarray(x, [[5]])
