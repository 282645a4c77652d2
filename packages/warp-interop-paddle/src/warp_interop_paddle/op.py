"""One call that makes a differentiable operator of Paddle from a kernel, or from a Python function of launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import paddle

from warp.errors import ArgumentError, AutogradError
from warp_interop_paddle.body import Body, Dims, Run, is_differentiable
from warp_interop_paddle.convert import to_paddle
from warp_interop_paddle.parameters import parameters_of


class PaddleOp:
    """A differentiable operator of Paddle. Call it with tensors; it returns its outputs as tensors."""

    def __init__(self, body: Body) -> None:
        self.__name__ = body.name
        self.__doc__ = getattr(body.function, "__doc__", None)
        self._names = [parameter.name for parameter in body.inputs]
        self._body = body

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the outputs, inputs that the function changes first: a tensor, or a tuple of several.

        Raises ArgumentError, which names the parameter, for an argument that does not fit.
        """
        values = self._in_order(args, keywords) if keywords or len(args) != len(self._names) else args
        self._body.check(values)
        results = _Operator.apply(_Call(self._body, values), *[values[place] for place in self._body.array_places])
        return results[0] if len(results) == 1 else tuple(results)

    def _in_order(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
        values = dict(zip(self._names, args, strict=False))
        unknown = [name for name in keywords if name not in self._names]
        twice = [name for name in keywords if name in values]
        values.update(keywords)
        if unknown or twice or len(args) > len(self._names) or len(values) != len(self._names):
            given = f"{len(args)} positional arguments" + (f" and {', '.join(keywords)}" if keywords else "")
            raise ArgumentError(f"{self.__name__} takes ({', '.join(self._names)}), but got {given}")
        return [values[name] for name in self._names]

    def __deepcopy__(self, _memo: Any) -> PaddleOp:
        return self  # as a function would be, when a layer that holds one is copied

    def __repr__(self) -> str:
        return f"<paddle operator {self.__name__}({', '.join(self._names)})>"


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
    names = [in_out_argnames] if isinstance(in_out_argnames, str) else list(in_out_argnames)
    return PaddleOp(Body(function, parameters_of(function, num_outputs, names), launch_dims, output_dims))


class _Call:
    """An operator and its arguments, which Paddle is to pass on without a look: it takes lists for lists of tensors."""

    def __init__(self, body: Body, values: Sequence[Any]) -> None:
        self.body = body
        self._values = values

    def values_with(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the arguments with the tensors that Paddle gives in place of those that it got."""
        values = list(self._values)
        for place, tensor in zip(self.body.array_places, tensors, strict=True):
            values[place] = tensor
        return values


class _Operator(paddle.autograd.PyLayer):  # type: ignore[misc]  # Paddle is untyped
    """Runs a body."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:
        ctx.needed = [not tensor.stop_gradient and tensor.is_floating_point() for tensor in inputs]
        # The results go to Paddle as other objects than those that are kept, or they would keep themselves alive.
        ctx.run = Run(call.body, call.values_with(inputs))
        tensors = [to_paddle(result, requires_grad=False) for result in ctx.run.results]
        constant = [
            tensor
            for tensor, result in zip(tensors, ctx.run.results, strict=True)
            if not is_differentiable(result.dtype)
        ]
        if constant:
            ctx.mark_non_differentiable(*constant)
        return tuple(tensors)

    @staticmethod
    def backward(ctx: Any, *adjoints: Any) -> Any:
        if paddle.is_grad_enabled():
            return _FirstDerivative.apply(ctx, *adjoints)
        return _adjoints(ctx, adjoints)


class _FirstDerivative(paddle.autograd.PyLayer):  # type: ignore[misc]  # Paddle is untyped
    """Runs the adjoint of a body where derivatives of what it gives may be asked for, and refuses those."""

    @staticmethod
    def forward(_ctx: Any, operator: Any, *adjoints: Any) -> Any:
        return _adjoints(operator, adjoints)

    @staticmethod
    def backward(_ctx: Any, *_adjoints: Any) -> Any:
        raise AutogradError("warp.paddle_op has first derivatives only: the gradient of a gradient was asked for")


def _adjoints(ctx: Any, adjoints: Sequence[Any]) -> tuple[Any, ...]:
    """Return the adjoints of the input tensors, None where there is none."""
    if not any(ctx.needed):
        return (None,) * len(ctx.needed)
    return tuple(
        None if found is None else to_paddle(found, requires_grad=False)
        for found in ctx.run.adjoints(ctx.needed, adjoints)
    )
