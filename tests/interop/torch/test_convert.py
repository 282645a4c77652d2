"""Conversions share memory, keep it alive, and say clearly what cannot be shared."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

import warp as wp
from warp.errors import ArgumentError, DeviceError

SAME = {
    wp.float16: torch.float16,
    wp.float32: torch.float32,
    wp.float64: torch.float64,
    wp.int8: torch.int8,
    wp.int16: torch.int16,
    wp.int32: torch.int32,
    wp.int64: torch.int64,
    wp.uint8: torch.uint8,
    wp.bool: torch.bool,
}
UNSIGNED = {wp.uint16: torch.int16, wp.uint32: torch.int32, wp.uint64: torch.int64}


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


@pytest.mark.parametrize(("warp_type", "torch_type"), SAME.items())
def test_dtypes_both_ways(warp_type: Any, torch_type: Any) -> None:
    assert wp.dtype_to_torch(warp_type) is torch_type
    assert wp.dtype_from_torch(torch_type) is warp_type
    array = wp.from_torch(torch.ones(3).to(torch_type))
    assert array.dtype is warp_type
    assert array.numpy().tolist() == [1, 1, 1]
    back = wp.to_torch(array)
    assert back.dtype is torch_type
    assert back.data_ptr() == array.ptr


@pytest.mark.parametrize(("warp_type", "torch_type"), UNSIGNED.items())
def test_unsigned_integers_become_signed_ones_of_their_width(warp_type: Any, torch_type: Any) -> None:
    assert wp.dtype_to_torch(warp_type) is torch_type
    array = wp.array([1, 2], dtype=warp_type)
    tensor = wp.to_torch(array)
    assert tensor.dtype is torch_type
    tensor[0] = -1
    assert array.numpy()[0] == np.iinfo(array.numpy().dtype).max
    assert wp.from_torch(tensor, dtype=warp_type).dtype is warp_type
    own = getattr(torch, warp_type.__name__)
    assert wp.dtype_from_torch(own) is warp_type
    assert wp.from_torch(torch.zeros(2, dtype=own)).dtype is warp_type


def test_python_types_stand_for_their_scalars() -> None:
    assert [wp.dtype_to_torch(kind) for kind in (float, int, bool)] == [torch.float32, torch.int32, torch.bool]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.quint8, "float32", None, 3])
def test_types_without_counterpart_are_type_errors(dtype: Any) -> None:
    with pytest.raises(TypeError, match="no counterpart"):
        wp.dtype_from_torch(dtype)


@pytest.mark.parametrize("dtype", [wp.vec3, Pair, str])
def test_warp_types_without_counterpart_are_type_errors(dtype: Any) -> None:
    with pytest.raises(TypeError):
        wp.dtype_to_torch(dtype)


def test_devices() -> None:
    assert wp.device_from_torch("cpu") is wp.get_device("cpu")
    assert wp.device_from_torch(torch.device("cpu")) is wp.get_device("cpu")
    assert wp.get_device(torch.device("cpu")) is wp.get_device("cpu")
    assert [wp.device_to_torch(place) for place in ("cpu", None, wp.get_device())] == ["cpu"] * 3
    assert torch.zeros(1, device=wp.device_to_torch("cpu")).device.type == "cpu"


@pytest.mark.parametrize("device", ["meta", torch.device("meta"), "cuda:77", "no such place", 3])
def test_devices_that_warp_does_not_have_are_runtime_errors(device: Any) -> None:
    with pytest.raises(RuntimeError):
        wp.device_from_torch(device)


def test_devices_that_do_not_exist_are_runtime_errors() -> None:
    with pytest.raises(DeviceError, match="cuda:77"):
        wp.device_to_torch("cuda:77")


@pytest.mark.parametrize("function", [wp.stream_from_torch, wp.stream_to_torch])
def test_the_cpu_has_no_streams(function: Any) -> None:
    with pytest.raises(DeviceError, match="'cpu' has no streams"):
        function("cpu")


# ---------------------------------------------------------------------------------------------------- memory


@given(
    shape=st.lists(st.integers(0, 4), max_size=4).map(tuple),
    order=st.randoms(use_true_random=False),
    step=st.integers(1, 3),
    dtype=st.sampled_from([*SAME.values(), torch.uint16, torch.uint32]),
)
def test_any_layout_is_shared_both_ways(shape: tuple[int, ...], order: Any, step: int, dtype: Any) -> None:
    axes = list(range(len(shape)))
    order.shuffle(axes)
    memory = torch.arange(int(np.prod([size * step for size in shape]))).to(dtype)
    tensor = memory.reshape([size * step for size in shape])[(slice(None, None, step),) * len(shape)].permute(axes)
    array = wp.from_torch(tensor)
    assert array.shape == tuple(tensor.shape)
    assert np.array_equal(array.numpy(), tensor.numpy())
    if tensor.numel():
        assert array.ptr == tensor.data_ptr()
        array.fill_(1)
        assert (tensor.numpy() == 1).all()
    back = wp.to_torch(array)
    assert back.shape == tensor.shape
    if tensor.numel():
        assert back.data_ptr() == tensor.data_ptr()
        assert all(a == b for a, b, n in zip(back.stride(), tensor.stride(), tensor.shape, strict=True) if n > 1)


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
    tensor = torch.arange(4 * int(np.prod(inner)), dtype=torch.float32).reshape(4, *inner)
    array = wp.from_torch(tensor, dtype=dtype)
    assert array.shape == (4,)
    assert array.dtype is dtype
    assert array.ptr == tensor.data_ptr()
    assert wp.to_torch(array).shape == tensor.shape
    rows = tensor[::2]  # gaps between elements are fine
    assert wp.from_torch(rows, dtype=dtype).strides[0] == 2 * array.strides[0]


def test_components_with_gaps_are_refused() -> None:
    with pytest.raises(ArgumentError, match="vec3"):
        wp.from_torch(torch.zeros(3, 4).t(), dtype=wp.vec3)
    with pytest.raises(ArgumentError, match="vec2"):
        wp.from_torch(torch.zeros(4, 3), dtype=wp.vec2)


@pytest.mark.parametrize("dtype", [wp.float64, wp.int32, wp.vec3d])
def test_types_that_would_need_conversion_are_refused(dtype: Any) -> None:
    with pytest.raises(ArgumentError, match="float32"):
        wp.from_torch(torch.zeros(4, 3), dtype=dtype)


def test_memory_lives_as_long_as_its_last_user() -> None:
    tensor = torch.arange(1000, dtype=torch.float32)
    reference = weakref.ref(tensor)
    array = wp.from_torch(tensor)
    view = array[10:20]
    del tensor, array
    gc.collect()
    assert view.numpy().tolist() == list(range(10, 20))
    del view
    gc.collect()
    assert reference() is None

    made = wp.array(np.arange(1000), dtype=wp.float32)
    back = wp.to_torch(made)[10:20]
    del made
    gc.collect()
    assert back.tolist() == list(range(10, 20))


def test_what_pytorch_has_no_tensor_for() -> None:
    with pytest.raises(TypeError, match="Pair"):
        wp.to_torch(wp.zeros(3, dtype=Pair))
    with pytest.raises(TypeError, match=r"warp\.array"):
        wp.to_torch(torch.zeros(3))
    backwards = wp.array(np.arange(3.0, dtype=np.float32)[::-1], copy=False)
    with pytest.raises(ArgumentError, match="negative strides"):
        wp.to_torch(backwards)
    values = np.zeros(3, np.float32)
    values.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        wp.to_torch(wp.array(values, copy=False))


# ---------------------------------------------------------------------------------------------------- odd tensors


class Plain(torch.Tensor):
    pass


def fake() -> Any:
    with FakeTensorMode():
        return torch.zeros(3)


ODD = {
    "fake": (fake, "FakeTensor"),
    "meta": (lambda: torch.zeros(3, device="meta"), "meta"),
    "sparse": (lambda: torch.ones(3).to_sparse(), "to_dense"),
    "mkldnn": (lambda: torch.ones(3, 3).to_mkldnn(), "to_dense"),
    "conjugate": (lambda: torch.zeros(3, dtype=torch.complex64).conj(), "complex64"),
    "negative": (lambda: torch.zeros(3, dtype=torch.complex64).conj().imag, "resolve_neg"),
    "complex": (lambda: torch.zeros(3, dtype=torch.complex64), "complex64"),
    "five dimensions": (lambda: torch.zeros(1, 1, 1, 1, 1), "5 dimensions"),
    "a list": (lambda: [1.0], "list"),
}


@pytest.mark.parametrize("name", ODD)
def test_tensors_without_usable_memory_are_refused(name: str) -> None:
    make, message = ODD[name]
    with pytest.raises(ArgumentError, match=message):
        wp.from_torch(make())
    with pytest.raises(ArgumentError):
        wp.launch(set_five, dim=3, inputs=[make()])


def test_freed_memory_is_refused() -> None:
    tensor = torch.ones(3)
    tensor.untyped_storage().resize_(0)
    with pytest.raises(ArgumentError, match="address is 0"):
        wp.from_torch(tensor)


def test_tensors_of_transforms_are_refused() -> None:
    with pytest.raises(ArgumentError, match="torch_op"):
        torch.vmap(lambda x: wp.from_torch(x))(torch.zeros(2, 3))
    with pytest.raises(ArgumentError, match="torch_op"):
        torch.func.grad(lambda x: wp.from_torch(x))(torch.tensor(1.0))


def test_plain_subclasses_and_parameters_are_shared() -> None:
    for tensor in (torch.ones(3).as_subclass(Plain), torch.nn.Parameter(torch.ones(3))):
        wp.launch(set_five, dim=3, inputs=[wp.from_torch(tensor)])
        assert tensor.tolist() == [5.0, 5.0, 5.0]


# ---------------------------------------------------------------------------------------------------- launches


def test_tensors_go_straight_into_launches() -> None:
    x, y = torch.arange(4, dtype=torch.float32), torch.zeros(4)
    wp.launch(double, dim=4, inputs=[x, y], device=x.device)
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_descriptors_go_into_launches() -> None:
    x, y = torch.arange(4, dtype=torch.float32), torch.zeros(4)
    wp.launch(double, dim=4, inputs=[wp.from_torch(x, return_ctype=True), wp.from_torch(y, return_ctype=True)])
    assert y.tolist() == [0.0, 2.0, 4.0, 6.0]
    with pytest.raises(ArgumentError, match="complex64"):
        wp.launch(double, dim=1, inputs=[wp.from_torch(torch.zeros(1).to(torch.complex64), return_ctype=True), y])


def test_writing_to_elements_that_share_memory_is_refused() -> None:
    spread = torch.zeros(1).expand(4)
    wp.launch(double, dim=4, inputs=[spread, torch.zeros(4)])
    with pytest.raises(ArgumentError, match="share memory"):
        wp.launch(set_five, dim=4, inputs=[spread])


WRITERS = {
    "direct": lambda t: wp.launch(set_five, dim=3, inputs=[t]),
    "array": lambda t: wp.launch(set_five, dim=3, inputs=[wp.from_torch(t)]),
    "view": lambda t: wp.launch(set_five, dim=2, inputs=[wp.from_torch(t)[1:]]),
    "descriptor": lambda t: wp.launch(set_five, dim=3, inputs=[wp.from_torch(t, return_ctype=True)]),
    "fill": lambda t: wp.from_torch(t).fill_(5.0),
    "assign": lambda t: wp.from_torch(t).assign([5.0, 5.0, 5.0]),
    "copy": lambda t: wp.copy(wp.from_torch(t), wp.ones(3)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_autograd_sees_that_a_saved_tensor_was_written(name: str) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    loss = y.sum()
    WRITERS[name](y.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_reading_leaves_the_version_alone() -> None:
    x = torch.ones(3)
    before = x._version
    wp.launch(double, dim=3, inputs=[x, torch.zeros(3)])
    wp.from_torch(x).numpy()
    assert x._version == before


def test_a_tensor_made_of_an_array_sees_writes_to_the_array() -> None:
    array = wp.zeros(3)
    tensor = wp.to_torch(array)
    before = tensor._version
    wp.launch(set_five, dim=3, inputs=[array])
    assert tensor._version > before


@pytest.mark.filterwarnings("ignore:Dynamo detected")
def test_conversions_break_a_compiled_graph_and_nothing_else() -> None:
    @torch.compile(backend="aot_eager")
    def use(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        wp.launch(double, dim=4, inputs=[wp.from_torch(x + 1), y])
        return wp.to_torch(wp.from_torch(y)) * 2

    assert use(torch.arange(4, dtype=torch.float32)).tolist() == [4.0, 8.0, 12.0, 16.0]


FIRST_CALLS = [
    "assert wp.from_torch(torch.ones(3)).numpy().sum() == 3",
    "assert wp.device_from_torch('cpu').is_cpu",
    "assert wp.dtype_to_torch(wp.float32) is torch.float32",
    "assert wp.to_torch(wp.zeros(3)).sum() == 0",
    "assert wp.get_device(torch.device('cpu')).is_cpu",
    "assert wp.zeros(2, dtype=torch.float64).dtype is wp.float64",
]


@pytest.mark.parametrize("call", FIRST_CALLS)
@pytest.mark.parametrize("imports", ["import torch; import warp as wp", "import warp as wp; import torch"])
def test_each_may_be_the_first_call_of_a_program(imports: str, call: str) -> None:
    subprocess.run([sys.executable, "-c", f"{imports}\n{call}"], check=True, timeout=300)


def test_bfloat16_is_shared_and_computed_with():
    @wp.kernel
    def double(x: wp.array(dtype=wp.bfloat16), y: wp.array(dtype=wp.float32)):
        i = wp.tid()
        y[i] = 2.0 * float(x[i])

    t = torch.tensor([0.5, -1.5, 3.0], dtype=torch.bfloat16)
    a = wp.from_torch(t)
    assert a.dtype is wp.bfloat16
    assert wp.to_torch(a).data_ptr() == t.data_ptr()
    assert wp.to_torch(a).dtype is torch.bfloat16
    y = wp.zeros(3, dtype=wp.float32)
    wp.launch(double, 3, inputs=[t, y])
    assert y.numpy().tolist() == [1.0, -3.0, 6.0]
