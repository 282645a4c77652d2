"""How autograd differentiates the adjoint and the tangent of an operator: with one another, and second derivatives.

With an operator y = f(x), adjoints g of y and a direction t of x, its adjoint is J(x)^T g and its tangent J(x) t.
The derivative of the adjoint along t is the product H t with the second derivatives of g.f(x), which are symmetric:
so it is also the gradient of t.(J(x)^T g) and of g.(J(x) t) with respect to x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from warp.errors import AutogradError
from warp_interop_torch.batching import run_each
from warp_interop_torch.body import Body
from warp_interop_torch.tensors import are_plain

Call = Callable[..., Any]


class Rules:
    """Backward and forward rules of the adjoint and the tangent.

    They call the operator, its adjoint, its tangent, and the adjoint's tangent, bare or in Functions.
    """

    def __init__(self, body: Body, *calls: Call) -> None:
        self._body = body
        if calls:
            self.set_calls(*calls)
        self._count = len(body.inputs)
        self._number = len(body.results)

    def set_calls(self, primal: Call, adjoint: Call, tangent: Call, product: Call) -> None:
        """Say what to call; Functions need the rules before they exist."""
        self._primal, self._adjoint, self._tangent, self._product = primal, adjoint, tangent, product

    # ------------------------------------------------------------------ the adjoint, of (mask, x, y, g)

    def adjoint_backward(self, ctx: Any, *cotangents: Any) -> Any:
        """Return the adjoints of the arguments of the adjoint."""
        mask, *tensors = _restore(ctx)
        values, _, given = self._split(tensors)
        tangents = self._tangents(values, cotangents, mask)
        needed = ctx.needs_input_grad[1:]
        of_inputs = self._products(values, given, tangents, needed)
        of_given: Sequence[Any] = [None] * self._number
        if any(needed[self._count + self._number :]):
            of_given = _listed(self._tangent(*values, *tangents))
        pairs = zip(given, of_given, strict=True)
        differentiable = [found if adjoint.is_floating_point() else None for adjoint, found in pairs]
        return (None, *of_inputs, *[None] * self._number, *differentiable)

    def adjoint_jvp(self, ctx: Any, *tangents: Any) -> Any:
        """Return the derivative of the adjoint along a direction of its arguments."""
        mask, *tensors = _restore(ctx)
        values, results, given = self._split(tensors)
        along_values, _, along_given = self._split(tangents[1:])
        arrays = [along_values[place] for place in self._body.array_places]
        parts = [_listed(self._product(mask, *values, *given, *self._tangents(values, arrays)))]
        if any(tangent is not None for tangent in along_given):
            parts.append(_listed(self._adjoint(mask, *values, *results, *_zeros_for_none(along_given, given))))
        sums = [sum(found) for found in zip(*parts, strict=True)]
        return sums[0] if len(sums) == 1 else tuple(sums)

    # ------------------------------------------------------------------ the tangent, of (x, t)

    def tangent_backward(self, ctx: Any, *cotangents: Any) -> Any:
        """Return the adjoints of the arguments of the tangent."""
        tensors = _restore(ctx)
        values, tangents = tensors[: self._count], tensors[self._count :]
        results = _listed(self._primal(*values))
        given = _zeros_for_none(cotangents, results)
        needed = ctx.needs_input_grad
        of_inputs = self._products(values, given, tangents, needed)
        mask = self._mask(values, needed[self._count :])
        of_tangents: Sequence[Any] = [None] * len(tangents)
        if mask:
            found = _listed(self._adjoint(mask, *values, *results, *given))
            of_tangents = [
                adjoint if mask >> place & 1 else None
                for place, adjoint in zip(self._body.array_places, found, strict=True)
            ]
        return (*of_inputs, *of_tangents)

    # ------------------------------------------------------------------ parts

    def _split(self, tensors: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        count, number = self._count, self._count + self._number
        return tensors[:count], tensors[count:number], tensors[number:]

    def _mask(self, values: Sequence[Any], needed_of_arrays: Sequence[bool]) -> int:
        needed = dict(zip(self._body.array_places, needed_of_arrays, strict=True))
        return self._body.mask_of(values, [needed.get(place, False) for place in range(self._count)])

    def _tangents(self, values: Sequence[Any], given: Sequence[Any], mask: int = -1) -> list[Any]:
        """Return a direction for each input array: what is given, zeros for the others."""
        return [
            torch.zeros_like(values[place]) if tangent is None or not mask >> place & 1 else tangent
            for place, tangent in zip(self._body.array_places, given, strict=True)
        ]

    def _products(
        self, values: Sequence[Any], given: Sequence[Any], tangents: Sequence[Any], needed: Sequence[bool]
    ) -> list[Any]:
        """Return the products with the second derivatives for the inputs that need them, None for the others."""
        mask = self._body.mask_of(values, needed[: self._count])
        found = iter(_listed(self._product(mask, *values, *given, *tangents)) if mask else ())
        by_place = [next(found, None) if parameter.is_array else None for parameter in self._body.inputs]
        return [product if mask >> place & 1 else None for place, product in enumerate(by_place)]


def make_derivative(run: Call, operator: Call, backward: Call, jvp: Call) -> Any:
    """Return a Function around an operator that is itself a derivative."""

    class Derivative(torch.autograd.Function):  # type: ignore[misc]  # PyTorch may be absent
        @staticmethod
        def forward(*values: Any) -> Any:
            return run(*values) if are_plain(values) else operator(*values)

        setup_context = staticmethod(keep_inputs)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *values: Any) -> Any:
            return run_each(Derivative.apply, info.batch_size, in_dims, values)

    Derivative.backward = staticmethod(backward)
    Derivative.jvp = staticmethod(jvp)
    return Derivative


def keep_inputs(ctx: Any, inputs: Any, output: Any) -> None:  # noqa: ARG001 - PyTorch passes it by name
    """Save the arguments of a derivative for its own derivatives."""
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.save_for_forward(*tensors)
    ctx.values = [None if isinstance(value, torch.Tensor) else value for value in inputs]


def refuse_third_derivative(_ctx: Any, *_derivatives: Any) -> Any:
    """Refuse what there is no rule for."""
    raise AutogradError(
        "warp.torch_op has first and second derivatives, and no forward mode of forward mode: a third derivative, or "
        "the tangent of a tangent, was asked for"
    )


def _restore(ctx: Any) -> list[Any]:
    saved = iter(ctx.saved_tensors)
    return [next(saved) if value is None else value for value in ctx.values]


def _zeros_for_none(given: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    return [torch.zeros_like(other) if value is None else value for value, other in zip(given, like, strict=True)]


def _listed(found: Any) -> list[Any]:
    return [found] if isinstance(found, torch.Tensor) else list(found)
