"""Which tensors have memory of their own that kernels can work on, and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from warp.errors import ArgumentError
from warp.plugins import TensorMemory

_is_wrapped: Final = torch._C._functorch.is_functorch_wrapped_tensor
_is_batched: Final = torch._C._functorch.is_legacy_batchedtensor
_PLAIN: Final = (torch.Tensor, torch.nn.Parameter)
_DISPATCHES_NOTHING: Final = torch.Tensor.__torch_dispatch__


def read(tensor: Any) -> TensorMemory:
    """Return where a tensor's elements are.

    Raises ArgumentError (a TypeError and RuntimeError) for tensors without memory of their own, and for those whose
    memory does not hold their values: it says what to do.
    """
    if type(tensor) is not torch.Tensor:
        tensor = _plain(tensor)
    try:
        pointer, strides = tensor.data_ptr(), tensor.stride()
    except RuntimeError as error:
        raise ArgumentError(_why_without_memory(tensor)) from error
    if not pointer or tensor.is_neg():
        _check_values(tensor, pointer)
    return TensorMemory(pointer, tuple(tensor.shape), strides, tensor.dtype, tensor.device)


def resolve(tensor: Any, ndim: int) -> Any:
    """Return a tensor whose memory holds the values, a copy if need be.

    The dimensions after the first `ndim`, which are those of one element, have no gaps.
    """
    if tensor.is_neg() or tensor.is_conj():
        tensor = tensor.detach().resolve_conj().resolve_neg()
    inner = tensor.shape[ndim:]
    if not inner or not tensor.numel():
        return tensor
    step = 1
    for size, stride in zip(reversed(inner), reversed(tensor.stride()), strict=False):
        if size != 1 and stride != step:
            return tensor.contiguous()
        step *= size
    return tensor


def are_plain(values: Sequence[Any]) -> bool:
    """Tell whether nobody traces or transforms the tensors among `values`.

    The dispatcher, which costs more than a small launch, then has nothing to do.
    """
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    for value in values:
        if isinstance(value, torch.Tensor) and (
            type(value) not in _PLAIN or value.is_meta or _is_wrapped(value) or _is_batched(value)
        ):
            return False
    return True


def _plain(tensor: Any) -> Any:
    """Return an instance of a subclass of Tensor as a Tensor, if its memory holds its values."""
    if type(tensor).__torch_dispatch__ is not _DISPATCHES_NOTHING:
        raise ArgumentError(
            f"a {type(tensor).__qualname__} stands for other tensors and has no memory that a kernel could use; "
            "inside code that PyTorch traces, call a kernel through warp.torch_op"
        )
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


def _why_without_memory(tensor: Any) -> str:
    if _is_wrapped(tensor):
        return (
            "the tensor is one of torch.func.grad, torch.vmap or another transform, and has no memory that a kernel "
            "could use; call the kernel through warp.torch_op"
        )
    if tensor.is_nested:
        return "a nested tensor has no shape that a kernel could use; pass its values, or pad it"
    if tensor.layout is not torch.strided:
        return f"a tensor with layout {tensor.layout} cannot be shared; convert it with to_dense()"
    return f"the tensor has no memory that a kernel could use: {type(tensor).__qualname__} on {tensor.device}"


def _check_values(tensor: Any, pointer: int) -> None:
    if tensor.is_neg():
        raise ArgumentError(
            "the tensor's memory holds the negatives of its values; call resolve_neg() for one that can be shared"
        )
    if tensor.device.type == "meta":
        raise ArgumentError("a tensor on the meta device has no memory")
    if not pointer and tensor.numel():
        raise ArgumentError("the tensor's memory was released or never allocated (its address is 0)")
