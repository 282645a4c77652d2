"""One call that makes a differentiable operator of PyTorch from a kernel, or from a Python function of launches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from warp.errors import ArgumentError
from warp.operators import Dims, Operator
from warp_interop_torch.batching import run_each
from warp_interop_torch.body import TENSORS, Body
from warp_interop_torch.rules import Rules, keep_inputs, make_derivative, refuse_third_derivative
from warp_interop_torch.tensors import are_plain

_NAMESPACE = "warp_op"


class TorchOp:
    """A differentiable operator of PyTorch. Call it with tensors; it returns its outputs as tensors."""

    def __init__(self, operator: Operator, name: str) -> None:
        self.__name__ = operator.name
        self.__doc__ = getattr(operator.computation.function, "__doc__", None)
        self.name = name
        """The operator's name in `torch.ops`."""
        self._operator = operator
        self._body = body = Body(operator)
        self.op = _register_operator(body, name)
        """The operator itself, for `torch.library.opcheck`."""
        self._function = _make_function(body, self.op, *_register_derivatives(body, name, self.op))
        # What `apply` does for transforms of torch.func before it comes to this costs more than a small launch.
        self._apply = super(torch.autograd.Function, self._function).apply  # type: ignore[misc]  # PyTorch may be absent

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Return the outputs, inputs that the function changes first: a tensor, or a tuple of several.

        Raises ArgumentError, which names the parameter, for an argument that does not fit.
        """
        values = self._body.flatten(self._operator.bind(args, keywords))
        # torch.compile cannot trace a Function made at run time; torch.func cannot differentiate the bare operator.
        if torch.compiler.is_compiling():
            return self.op(*values)
        if are_plain(values):
            return self._apply(*values)
        return self._function.apply(*values) if torch.is_grad_enabled() else self.op(*values)

    def __deepcopy__(self, _memo: Any) -> TorchOp:
        return self  # as a function would be, when a module that holds one is copied

    def __repr__(self) -> str:
        return f"<torch operator {self.name}({', '.join(parameter.name for parameter in self._operator.inputs)})>"


def torch_op(
    function: Any,
    num_outputs: int = 1,
    launch_dims: Dims = None,
    output_dims: Dims | Mapping[str, Dims] = None,
    in_out_argnames: Sequence[str] = (),
    name: str | None = None,
) -> TorchOp:
    """Make a differentiable operator of PyTorch from a kernel, or from an annotated function that launches kernels.

    The operator allocates its outputs, zeroed; no backward function is needed. It works with autograd, forward mode,
    `torch.compile`, `torch.vmap` and `torch.func`.

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
        name: The operator's name, `namespace::name`; unique in the process, and best the same in every run.

    Raises:
        ArgumentError: The function has parameters that PyTorch has nothing for.
    """
    operator = Operator(TENSORS, function, num_outputs, launch_dims, output_dims, in_out_argnames)
    return TorchOp(operator, _free_name(function, operator.name) if name is None else _check_name(name))


# ---------------------------------------------------------------------------------------------------- registration


def _free_name(function: Any, key: str) -> str:
    # Python mangles names with two leading underscores inside the classes that PyTorch's compiler writes.
    plain = re.sub(r"\W+", "_", f"{function.__module__}_{key}").strip("_")
    count, name = 1, f"{_NAMESPACE}::{plain}"
    while _exists(name):
        count += 1
        name = f"{_NAMESPACE}::{plain}_{count}"
    return name


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z]\w*::[A-Za-z]\w*", name):
        raise ArgumentError(f"name must be of the form 'namespace::name', each beginning with a letter, got {name!r}")
    if _exists(name):
        raise ArgumentError(f"name: PyTorch has an operator {name!r} already")
    return name


def _exists(name: str) -> bool:
    namespace, _, leaf = name.partition("::")
    return hasattr(getattr(torch.ops, namespace), leaf)


def _operator(name: str) -> Any:
    namespace, _, leaf = name.partition("::")
    return getattr(getattr(torch.ops, namespace), leaf).default


def _register(name: str, schema: str, run: Any, run_fake: Any) -> Any:
    torch.library.define(name, schema)
    torch.library.impl(name, ("cpu", "cuda"))(run)
    torch.library.register_fake(name)(run_fake)
    operator = _operator(name)

    def run_batch(info: Any, in_dims: Any, *values: Any) -> Any:
        return run_each(operator, info.batch_size, in_dims, values)

    torch.library.register_vmap(name, run_batch)
    return operator


def _tensors(count: int) -> str:
    return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _register_operator(body: Body, name: str) -> Any:
    schema = f"({', '.join(body.schema)}) -> {_tensors(len(body.results))}"
    return _register(name, schema, body.run, body.allocate)


def _register_derivatives(body: Body, name: str, operator: Any) -> tuple[Any, Any, Any]:
    """Register the operators that compute adjoints, tangents and their derivatives, and tell autograd of them."""
    count = len(body.array_places)
    results = [f"Tensor y{place}" for place in range(len(body.results))]
    adjoints = [f"Tensor g{place}" for place in range(len(body.results))]
    tangents = [f"Tensor t{place}" for place in range(count)]
    schema = f"({', '.join(['SymInt mask', *body.schema, *results, *adjoints])}) -> {_tensors(count)}"
    adjoint = _register(f"{name}_adjoint", schema, body.run_adjoint, body.allocate_adjoints)
    schema = f"({', '.join([*body.schema, *tangents])}) -> {_tensors(len(body.results))}"
    tangent = _register(f"{name}_tangent", schema, body.run_tangent, body.allocate_tangents)
    schema = f"({', '.join(['SymInt mask', *body.schema, *adjoints, *tangents])}) -> {_tensors(count)}"
    product = _register(f"{name}_adjoint_tangent", schema, body.run_adjoint_tangent, body.allocate_adjoints)
    rules = Rules(body, operator, adjoint, tangent, product)
    for kind, backward, keep in (
        ("", lambda ctx, *adjoints: _adjoints(body, adjoint, ctx, adjoints), _keep_tensors),
        ("_adjoint", rules.adjoint_backward, keep_inputs),
        ("_tangent", rules.tangent_backward, keep_inputs),
        ("_adjoint_tangent", refuse_third_derivative, keep_inputs),
    ):
        torch.library.register_autograd(name + kind, backward, setup_context=keep)
    return adjoint, tangent, product


def _make_function(
    body: Body, operator: Any, adjoint_operator: Any, tangent_operator: Any, product_operator: Any
) -> Any:
    """Return an autograd Function around the operator, which, unlike it, transforms of torch.func can differentiate."""
    rules = Rules(body)
    refuse = refuse_third_derivative
    adjoint = make_derivative(body.run_adjoint, adjoint_operator, rules.adjoint_backward, rules.adjoint_jvp)
    tangent = make_derivative(body.run_tangent, tangent_operator, rules.tangent_backward, refuse)
    product = make_derivative(body.run_adjoint_tangent, product_operator, refuse, refuse)

    class Operator(torch.autograd.Function):  # type: ignore[misc]  # PyTorch may be absent
        @staticmethod
        def forward(*values: Any) -> Any:
            return body.run(*values) if are_plain(values) else operator(*values)

        setup_context = staticmethod(_keep_tensors)

        @staticmethod
        def backward(ctx: Any, *adjoints: Any) -> Any:
            run = adjoint.apply if torch.is_grad_enabled() else adjoint.forward
            return _adjoints(body, run, ctx, adjoints)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            values = _kept_inputs(body, ctx, iter(ctx.saved_tensors))
            given = [
                torch.zeros_like(values[place]) if tangents[place] is None else tangents[place]
                for place in body.array_places
            ]
            return tangent.apply(*values, *given)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *values: Any) -> Any:
            return run_each(Operator.apply, info.batch_size, in_dims, values)

    rules.set_calls(Operator.apply, adjoint.apply, tangent.apply, product.apply)
    return Operator


def _keep_tensors(ctx: Any, inputs: Any, output: Any) -> None:
    """Save inputs and outputs for the backward pass."""
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    kept = [*(value for value in inputs if isinstance(value, torch.Tensor)), *outputs]
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)
    ctx.values = [None if isinstance(value, torch.Tensor) else value for value in inputs]


def _kept_inputs(body: Body, ctx: Any, saved: Iterator[Any]) -> list[Any]:
    return [
        next(saved) if parameter.is_array else value for parameter, value in zip(body.inputs, ctx.values, strict=True)
    ]


def _adjoints(body: Body, run: Any, ctx: Any, adjoints: Sequence[Any]) -> Any:
    """Return the adjoints of all inputs, None where there is none."""
    saved = iter(ctx.saved_tensors)
    values = _kept_inputs(body, ctx, saved)
    results = list(saved)
    mask = body.mask_of(values, ctx.needs_input_grad[: len(values)])
    given = [
        torch.zeros_like(result) if adjoint is None else adjoint
        for result, adjoint in zip(results, adjoints, strict=True)
    ]
    found = run(mask, *values, *results, *given) if mask else ()
    of_arrays = iter((found,) if isinstance(found, torch.Tensor) else found)
    by_place = [next(of_arrays, None) if parameter.is_array else None for parameter in body.inputs]
    return tuple(adjoint if mask >> place & 1 else None for place, adjoint in enumerate(by_place))
