"""Conversions share memory, keep it alive, and say clearly what cannot be shared."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import paddle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warp as wp
from warp.errors import ArgumentError, DeviceError

SAME = {
    wp.float16: paddle.float16,
    wp.float32: paddle.float32,
    wp.float64: paddle.float64,
    wp.int8: paddle.int8,
    wp.int16: paddle.int16,
    wp.int32: paddle.int32,
    wp.int64: paddle.int64,
    wp.uint8: paddle.uint8,
    wp.bool: paddle.bool,
}
UNSIGNED = {wp.uint16: paddle.int16, wp.uint32: paddle.int32, wp.uint64: paddle.int64}


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def set_five(x: wp.array(dtype=float)):
    x[wp.tid()] = 5.0


@wp.struct
class Pair:
    x: float
    y: float


@pytest.mark.parametrize(("warp_type", "paddle_type"), SAME.items())
def test_dtypes_both_ways(warp_type: Any, paddle_type: Any) -> None:
    assert wp.dtype_to_paddle(warp_type) == paddle_type
    assert wp.dtype_from_paddle(paddle_type) is warp_type
    array = wp.from_paddle(paddle.ones([3], dtype=paddle_type))
    assert array.dtype is warp_type
    assert array.numpy().tolist() == [1, 1, 1]
    back = wp.to_paddle(array)
    assert back.dtype == paddle_type
    assert back.data_ptr() == array.ptr


@pytest.mark.parametrize(("warp_type", "paddle_type"), UNSIGNED.items())
def test_unsigned_integers_become_signed_ones_of_their_width(warp_type: Any, paddle_type: Any) -> None:
    assert wp.dtype_to_paddle(warp_type) == paddle_type
    array = wp.array([1, 2], dtype=warp_type)
    tensor = wp.to_paddle(array)
    assert tensor.dtype == paddle_type
    tensor[0] = -1
    assert array.numpy()[0] == np.iinfo(array.numpy().dtype).max
    assert wp.from_paddle(tensor, dtype=warp_type).dtype is warp_type
    own = paddle.utils.dlpack.from_dlpack(array.numpy())
    assert wp.from_paddle(own).dtype is warp_type


def test_bfloat16_both_ways() -> None:
    assert wp.dtype_to_paddle(wp.bfloat16) == paddle.bfloat16
    tensor = paddle.to_tensor([1.0, -2.0], dtype="bfloat16")
    array = wp.from_paddle(tensor)
    assert array.dtype is wp.bfloat16
    back = wp.to_paddle(array)
    assert back.dtype == paddle.bfloat16
    assert back.data_ptr() == tensor.data_ptr()
    assert back.astype("float32").tolist() == [1.0, -2.0]


def test_python_types_stand_for_their_scalars() -> None:
    assert [wp.dtype_to_paddle(kind) for kind in (float, int, bool)] == [paddle.float32, paddle.int32, paddle.bool]


@pytest.mark.parametrize("dtype", [paddle.complex64, paddle.complex128, paddle.float8_e4m3fn, "float32", None, 3])
def test_types_without_counterpart_are_type_errors(dtype: Any) -> None:
    with pytest.raises(TypeError, match="no counterpart"):
        wp.dtype_from_paddle(dtype)


@pytest.mark.parametrize("dtype", [wp.vec3, Pair, str])
def test_warp_types_without_counterpart_are_type_errors(dtype: Any) -> None:
    with pytest.raises(TypeError):
        wp.dtype_to_paddle(dtype)


def test_devices() -> None:
    for place in ("cpu", "gpu_pinned", paddle.CPUPlace(), paddle.zeros([1]).place):
        assert wp.device_from_paddle(place) is wp.get_device("cpu")
    assert wp.get_device(paddle.CPUPlace()) is wp.get_device("cpu")
    assert [wp.device_to_paddle(place) for place in ("cpu", None, wp.get_device())] == ["cpu"] * 3
    assert paddle.zeros([1]).to(device=wp.device_to_paddle("cpu")).place.is_cpu_place()


@pytest.mark.parametrize("device", ["xpu:0", "gpu:77", "cuda:77", "no such place", "", 3])
def test_devices_that_warp_does_not_have_are_runtime_errors(device: Any) -> None:
    with pytest.raises(RuntimeError):
        wp.device_from_paddle(device)


def test_devices_that_do_not_exist_are_runtime_errors() -> None:
    with pytest.raises(DeviceError, match="cuda:77"):
        wp.device_to_paddle("cuda:77")


@pytest.mark.parametrize("function", [wp.stream_from_paddle, wp.stream_to_paddle])
def test_the_cpu_has_no_streams(function: Any) -> None:
    with pytest.raises(DeviceError, match="'cpu' has no streams"):
        function("cpu")


# ---------------------------------------------------------------------------------------------------- memory


@given(
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    order=st.randoms(use_true_random=False),
    step=st.integers(1, 3),
    dtype=st.sampled_from([*SAME, wp.uint16, wp.uint32]),
)
def test_any_layout_is_shared_both_ways(shape: tuple[int, ...], order: Any, step: int, dtype: Any) -> None:
    axes = list(range(len(shape)))
    order.shuffle(axes)
    sizes = [size * step for size in shape]
    values = np.arange(int(np.prod(sizes))).astype(wp.dtype_to_numpy(dtype)).reshape(sizes)
    values = values[(..., *(slice(None, None, step),) * len(shape))].transpose(axes)
    tensor = paddle.utils.dlpack.from_dlpack(values)
    array = wp.from_paddle(tensor)
    assert array.shape == tuple(tensor.shape) == values.shape
    assert np.array_equal(array.numpy(), values)
    back = wp.to_paddle(array)
    assert tuple(back.shape) == values.shape
    if values.size:
        assert array.ptr == tensor.data_ptr() == back.data_ptr()
        array.fill_(1)
        assert (values == 1).all()
        assert all(a == b for a, b, n in zip(back.strides, tensor.strides, tensor.shape, strict=True) if n > 1)


@pytest.mark.parametrize(
    ("dtype", "inner"),
    [
        (wp.vec3, (3,)),
        (wp.mat22, (2, 2)),
        (wp.quat, (4,)),
        (wp.transform, (7,)),
        (wp.types.vector(5, wp.float32), (5,)),
    ],
)
def test_trailing_dimensions_are_elements(dtype: Any, inner: tuple[int, ...]) -> None:
    tensor = paddle.arange(4 * int(np.prod(inner)), dtype="float32").reshape([4, *inner])
    array = wp.from_paddle(tensor, dtype=dtype)
    assert array.shape == (4,)
    assert array.dtype is dtype
    assert array.ptr == tensor.data_ptr()
    assert wp.to_paddle(array).shape == tensor.shape
    rows = tensor[::2]  # gaps between elements are fine
    assert wp.from_paddle(rows, dtype=dtype).strides[0] == 2 * array.strides[0]


def test_components_with_gaps_are_refused() -> None:
    with pytest.raises(ArgumentError, match="vec3"):
        wp.from_paddle(paddle.zeros([3, 4]).t(), dtype=wp.vec3)
    with pytest.raises(ArgumentError, match="vec2"):
        wp.from_paddle(paddle.zeros([4, 3]), dtype=wp.vec2)


@pytest.mark.parametrize("dtype", [wp.float64, wp.int32, wp.vec3d])
def test_types_that_would_need_conversion_are_refused(dtype: Any) -> None:
    with pytest.raises(ArgumentError, match=r"(?i:float32)"):
        wp.from_paddle(paddle.zeros([4, 3]), dtype=dtype)


def test_memory_lives_as_long_as_its_last_user() -> None:
    tensor = paddle.arange(1000, dtype="float32")
    reference = weakref.ref(tensor)
    array = wp.from_paddle(tensor)
    view = array[10:20]
    del tensor, array
    gc.collect()
    assert view.numpy().tolist() == list(range(10, 20))
    del view
    gc.collect()
    assert reference() is None

    made = wp.array(np.arange(1000), dtype=wp.float32)
    back = wp.to_paddle(made)[10:20]
    del made
    gc.collect()
    assert back.tolist() == list(range(10, 20))


def test_a_tensor_of_an_array_of_a_tensor_is_freed() -> None:
    values = np.arange(3, dtype=np.float32)
    memory = weakref.ref(values)
    wp.launch(set_five, dim=3, inputs=[values])
    last = wp.to_paddle(wp.from_paddle(wp.to_paddle(wp.from_paddle(paddle.utils.dlpack.from_dlpack(values)))))
    del values
    gc.collect()
    assert last.tolist() == [5.0, 5.0, 5.0]
    del last
    gc.collect()
    assert memory() is None


EXPORTERS = {
    "to_paddle": lambda a: wp.to_paddle(a),
    "protocol": lambda a: paddle.utils.dlpack.from_dlpack(a),
    "capsule": lambda a: paddle.utils.dlpack.from_dlpack(wp.to_dlpack(a)),
}


@pytest.mark.parametrize("name", EXPORTERS)
def test_exported_arrays_are_freed(name: str) -> None:
    array = wp.ones(3)
    memory = weakref.ref(array)
    tensor = EXPORTERS[name](array)
    del array
    gc.collect()
    assert tensor.tolist() == [1.0, 1.0, 1.0]
    del tensor
    gc.collect()
    assert memory() is None


def test_memory_that_a_tensor_gives_up_stays() -> None:
    x = paddle.ones([3])
    x.stop_gradient = False
    (2 * x).sum().backward()
    gradient = x.grad
    array = wp.from_paddle(gradient)
    x.grad = None  # empties the tensor that was the gradient
    gc.collect()
    others = [paddle.full([3], 7.0) for _ in range(8)]
    assert array.numpy().tolist() == [2.0, 2.0, 2.0]
    assert len(others) == 8


def test_what_paddle_has_no_tensor_for() -> None:
    with pytest.raises(TypeError, match="Pair"):
        wp.to_paddle(wp.zeros(3, dtype=Pair))
    with pytest.raises(TypeError, match=r"warp\.array"):
        wp.to_paddle(paddle.zeros([3]))
    backwards = wp.array(np.arange(3.0, dtype=np.float32)[::-1], copy=False)
    with pytest.raises(ArgumentError, match="negative strides"):
        wp.to_paddle(backwards)
    values = np.zeros(3, np.float32)
    values.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        wp.to_paddle(wp.array(values, copy=False))


ODD = {
    "sparse": (lambda: paddle.sparse.sparse_coo_tensor([[0]], [1.0], [3]), "to_dense"),
    "complex": (lambda: paddle.zeros([3], dtype="complex64"), "(?i)complex64"),
    "five dimensions": (lambda: paddle.zeros([1, 1, 1, 1, 1]), "5 dimensions"),
    "a list": (lambda: [1.0], "list"),
}


@pytest.mark.parametrize("name", ODD)
def test_tensors_without_usable_memory_are_refused(name: str) -> None:
    make, message = ODD[name]
    with pytest.raises(ArgumentError, match=message):
        wp.from_paddle(make())
    with pytest.raises(ArgumentError):
        wp.launch(set_five, dim=3, inputs=[make()])


def test_parameters_are_shared() -> None:
    parameter = paddle.create_parameter([3], "float32")
    wp.launch(set_five, dim=3, inputs=[wp.from_paddle(parameter)])
    assert parameter.tolist() == [5.0, 5.0, 5.0]


def test_dlpack_both_ways() -> None:
    array = wp.array([1.0, 2.0], dtype=float)
    for tensor in (paddle.utils.dlpack.from_dlpack(array), paddle.utils.dlpack.from_dlpack(wp.to_dlpack(array))):
        assert tensor.data_ptr() == array.ptr
        for back in (wp.from_dlpack(tensor), wp.from_dlpack(paddle.utils.dlpack.to_dlpack(tensor))):
            assert back.ptr == array.ptr
            assert back.dtype is wp.float32


# ---------------------------------------------------------------------------------------------------- launches


def test_tensors_go_straight_into_launches() -> None:
    x, y = paddle.arange(4, dtype="float32"), paddle.zeros([4])
    wp.launch(double, dim=4, inputs=[x, y], device=x.place)
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_descriptors_go_into_launches() -> None:
    x, y = paddle.arange(4, dtype="float32"), paddle.zeros([4])
    wp.launch(double, dim=4, inputs=[wp.from_paddle(x, return_ctype=True), wp.from_paddle(y, return_ctype=True)])
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_writing_to_elements_that_share_memory_is_refused() -> None:
    spread = paddle.zeros([1])
    spread = paddle.as_strided(spread, [4], [0])
    wp.launch(double, dim=4, inputs=[spread, paddle.zeros([4])])
    with pytest.raises(ArgumentError, match="share memory"):
        wp.launch(set_five, dim=4, inputs=[spread])


WRITERS = {
    "direct": lambda t: wp.launch(set_five, dim=3, inputs=[t]),
    "array": lambda t: wp.launch(set_five, dim=3, inputs=[wp.from_paddle(t)]),
    "view": lambda t: wp.launch(set_five, dim=2, inputs=[wp.from_paddle(t)[1:]]),
    "descriptor": lambda t: wp.launch(set_five, dim=3, inputs=[wp.from_paddle(t, return_ctype=True)]),
    "fill": lambda t: wp.from_paddle(t).fill_(5.0),
    "assign": lambda t: wp.from_paddle(t).assign([5.0, 5.0, 5.0]),
    "copy": lambda t: wp.copy(wp.from_paddle(t), wp.ones(3)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_autograd_sees_that_a_saved_tensor_was_written(name: str) -> None:
    x = paddle.ones([3])
    x.stop_gradient = False
    y = x.exp()
    loss = y.sum()
    WRITERS[name](y.detach())
    with pytest.raises(RuntimeError, match="inplace"):
        loss.backward()


def test_reading_leaves_the_version_alone() -> None:
    x = paddle.ones([3])
    before = x.inplace_version
    wp.launch(double, dim=3, inputs=[x, paddle.zeros([3])])
    wp.from_paddle(x).numpy()
    assert x.inplace_version == before


FIRST_CALLS = [
    "assert wp.from_paddle(paddle.ones([3])).numpy().sum() == 3",
    "assert wp.device_from_paddle('cpu').is_cpu",
    "assert wp.dtype_to_paddle(wp.float32) == paddle.float32",
    "assert wp.to_paddle(wp.zeros(3)).sum() == 0",
    "assert wp.get_device(paddle.CPUPlace()).is_cpu",
    "assert wp.zeros(2, dtype=paddle.float64).dtype is wp.float64",
]


@pytest.mark.parametrize("call", FIRST_CALLS)
@pytest.mark.parametrize("imports", ["import paddle; import warp as wp", "import warp as wp; import paddle"])
def test_each_may_be_the_first_call_of_a_program(imports: str, call: str) -> None:
    subprocess.run([sys.executable, "-c", f"{imports}\n{call}"], check=True, timeout=300)
