"""One call that makes a differentiable operator of Paddle from a kernel, or from a Python function of launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import paddle
from paddle.jit.sot.psdb import fallback

from warp.errors import ArgumentError, AutogradError
from warp.operators import Dims, Operator, Tensors
from warp_interop_paddle.bridge import BRIDGE

# `paddle.zeros` takes longer than a small launch.
_full: Final = paddle._C_ops.full


def _clone(tensor: Any) -> Any:
    return tensor.detach().contiguous().clone()


def _zeros(like: Any, shape: Sequence[int], dtype: Any) -> Any:
    return _full(shape, 0.0, dtype, like.place)


def _prepare(tensor: Any, ndim: int) -> Any:
    """Return a tensor, or a copy, in which the dimensions after the first `ndim` have no gaps."""
    return tensor if tensor.is_contiguous() or len(tensor.shape) == ndim else tensor.detach().contiguous()


TENSORS: Final = Tensors(
    BRIDGE,
    describe=lambda tensor: (tuple(tensor.shape), tensor.dtype, tensor.place),
    zeros=_zeros,
    clone=_clone,
    prepare=_prepare,
)
"""Tensors as Paddle makes them."""


class PaddleOp:
    """A differentiable operator of Paddle. Call it with tensors; it returns its outputs as tensors."""

    def __init__(self, operator: Operator) -> None:
        self.__name__ = operator.name
        self.__doc__ = getattr(operator.computation.function, "__doc__", None)
        self._operator = operator

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the outputs, inputs that the function changes first: a tensor, or a tuple of several.

        Raises ArgumentError, which names the parameter, for an argument that does not fit.
        """
        fallback(recursive=True)  # Paddle's compiler then calls the operator as it is, between two graphs
        if not paddle.in_dynamic_mode():
            raise ArgumentError(
                f"{self.__name__} runs on tensors that have values, so it cannot be part of a static graph; use "
                "paddle.jit.to_static without full_graph=True"
            )
        call = _Call(self._operator, self._operator.bind(args, keywords))
        results = _Function.apply(call, *[call.values[place] for place in self._operator.array_places])
        return results[0] if len(results) == 1 else tuple(results)

    def __deepcopy__(self, _memo: Any) -> PaddleOp:
        return self  # as a function would be, when a layer that holds one is copied

    def __repr__(self) -> str:
        return f"<paddle operator {self.__name__}({', '.join(parameter.name for parameter in self._operator.inputs)})>"


def paddle_op(
    function: Any,
    num_outputs: int = 1,
    launch_dims: Dims = None,
    output_dims: Dims | Mapping[str, Dims] = None,
    in_out_argnames: Sequence[str] = (),
) -> PaddleOp:
    """Make a differentiable operator of Paddle from a kernel, or from an annotated function that launches kernels.

    The operator allocates its outputs, zeroed; no backward function is needed.

    Args:
        function: A kernel, or a Python function whose parameters are annotated as a kernel's are. The outputs come
            last among its parameters.
        num_outputs: Number of outputs, those in `in_out_argnames` included.
        launch_dims: Threads of the kernel: an int, a tuple, or a function of the operator's arguments that returns
            one; by default the shape of the first array.
        output_dims: Shape of the output arrays, given likewise, or by name of the output; by default `launch_dims`.
            Dimensions of vectors and matrices are added.
        in_out_argnames: Inputs that the function changes. The operator works on a copy, and returns it before the
            other outputs.

    Raises:
        ArgumentError: The function has parameters that Paddle has nothing for.
    """
    return PaddleOp(Operator(TENSORS, function, num_outputs, launch_dims, output_dims, in_out_argnames))


class _Call:
    """An operator and its arguments, which Paddle is to pass on without a look: it takes lists for lists of tensors."""

    def __init__(self, operator: Operator, values: Sequence[Any]) -> None:
        self.operator = operator
        self.values = list(values)
        self.results: list[Any] = []
        self._versions: list[int] = []

    def run(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the results for the tensors that Paddle gives in place of those of the call."""
        for place, tensor in zip(self.operator.array_places, tensors, strict=True):
            self.values[place] = tensor
        results = self.operator.run(self.values)
        # Kept as other objects than those that Paddle gets, or they would keep themselves alive.
        self.results = [result.detach() for result in results]
        self._versions = [tensor.inplace_version for tensor, _ in self._kept()]
        return results

    def adjoints(self, given: Sequence[Any], needed: Sequence[bool]) -> tuple[Any, ...]:
        """Return the adjoints of the input tensors, None where there is none, for those of the results.

        Raises AutogradError if an input or a result was written meanwhile.
        """
        for (tensor, what), version in zip(self._kept(), self._versions, strict=True):
            if tensor.inplace_version != version:
                raise AutogradError(
                    f"{self.operator.name}: {what} was modified by an inplace operation after the operator had used "
                    "it, and before its gradient was computed"
                )
        of_all = [False] * len(self.values)
        for place, is_needed in zip(self.operator.array_places, needed, strict=True):
            of_all[place] = is_needed
        found = self.operator.run_adjoint(self.values, self.results, given, of_all)
        return tuple(found[place] for place in self.operator.array_places)

    def _kept(self) -> Iterator[tuple[Any, str]]:
        """Yield the tensors that the adjoint reads, and what they are."""
        for place in self.operator.array_places:
            yield self.values[place], f"parameter '{self.operator.inputs[place].name}'"
        for parameter, result in zip(self.operator.results, self.results, strict=True):
            yield result, f"the output for parameter '{parameter.name}'"


class _Function(paddle.autograd.PyLayer):  # type: ignore[misc]  # Paddle is untyped
    """Runs an operator."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:
        ctx.call = call
        ctx.needed = [not tensor.stop_gradient and tensor.is_floating_point() for tensor in inputs]
        results = call.run(inputs)
        constant = [result for result in results if not result.is_floating_point()]
        if constant:
            ctx.mark_non_differentiable(*constant)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *adjoints: Any) -> Any:
        if paddle.is_grad_enabled():
            return _FirstDerivative.apply(ctx, *adjoints)
        return _adjoints(ctx, adjoints)


class _FirstDerivative(paddle.autograd.PyLayer):  # type: ignore[misc]  # Paddle is untyped
    """Runs the adjoint of an operator where derivatives of what it gives may be asked for, and refuses those."""

    @staticmethod
    def forward(_ctx: Any, function: Any, *adjoints: Any) -> Any:
        return _adjoints(function, adjoints)

    @staticmethod
    def backward(_ctx: Any, *_adjoints: Any) -> Any:
        raise AutogradError("warp.paddle_op has first derivatives only: the gradient of a gradient was asked for")


def _adjoints(ctx: Any, given: Sequence[Any]) -> tuple[Any, ...]:
    """Return the adjoints of the input tensors, None where there is none."""
    return ctx.call.adjoints(given, ctx.needed) if any(ctx.needed) else (None,) * len(ctx.needed)
