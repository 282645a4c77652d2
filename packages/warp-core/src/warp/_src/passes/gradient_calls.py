"""Calls of `wp.grad(f)` inside kernels: f's adjoint, replay and reverse in one, with 1 as the incoming adjoint.

What results is ordinary code, so that a kernel that contains it can be differentiated again. The reverse of a loop has
no adjoint, but second derivatives are symmetric: what an adjoint of the derivatives adds to the arguments is the
derivative of the derivatives along it, which forward mode gives.
"""

from __future__ import annotations

from dataclasses import replace

from warp._src.ir.core import Function, Region, Value
from warp._src.ir.ops import Invoke, Op, ReverseLoop
from warp._src.ir.traverse import clone_function
from warp._src.passes.access import AccessAnalysis
from warp._src.passes.adjoint_context import AdjointContext, Frame
from warp._src.passes.adjoint_control import Reverser
from warp._src.passes.adjoint_finish import finish, forget_checkpoints
from warp._src.passes.inline import inline, inline_all
from warp._src.passes.simplify import simplify
from warp._src.passes.tangent import tangent_of
from warp._src.types.signature import is_array, is_differentiable
from warp.errors import AutogradError


def expand_gradients(function: Function) -> Function:
    """Replace calls of gradients by calls of functions that compute them.

    Raises AutogradError, which names the line, if a function has no derivative.
    """
    return _Expansion().function(function)


class _Expansion:
    """Expands each function once; the checkpoints of all get numbers of their own."""

    def __init__(self) -> None:
        self._expanded: dict[Function, Function] = {}
        self._gradients: dict[Function, Function] = {}
        self._numbering: AdjointContext | None = None

    def function(self, function: Function) -> Function:
        if function not in self._expanded:
            self._expanded[function] = self._expand(function) if _calls_gradients(function) else function
        return self._expanded[function]

    def _expand(self, function: Function) -> Function:
        copy = clone_function(function)
        self._region(copy.body)
        gradient, replay = function.custom_gradient, function.custom_replay
        return replace(
            copy,
            custom_gradient=None if gradient is None else self.function(gradient),
            custom_replay=None if replay is None else self.function(replay),
        )

    def _region(self, region: Region) -> None:
        for number, op in enumerate(region.ops):
            if isinstance(op, Invoke):
                region.ops[number] = self._call(op)
            for inner in op.regions:
                self._region(inner)

    def _call(self, op: Invoke) -> Op:
        callee = self.function(op.function)
        if not op.is_gradient:
            return replace(op, function=callee)
        if callee not in self._gradients:
            self._gradients[callee] = self._gradient_of(callee, op)
        return replace(op, function=self._gradients[callee], is_gradient=False)

    def _gradient_of(self, function: Function, op: Invoke) -> Function:
        """Make the function that gives the derivative by each parameter that is no array."""
        primal = inline(_calling(function))
        simplify(primal.body)
        context = AdjointContext(primal, AccessAnalysis(primal), self._numbering, is_local=True)
        self._numbering = self._numbering or context
        params = tuple(Value(param.type, param.name) for param in primal.body.args)
        body = Region(params)
        frame = Frame(dict(zip(primal.body.args, params, strict=True)))
        reverser = Reverser(context)
        builder = context.builder
        targets = [param for param in primal.body.args if not is_array(param.type)]
        with builder.into(body), builder.at(op.loc):
            reverser.replay(primal.body.ops, frame, expose=True)
            (result,) = primal.body.terminator.operands
            context.accumulate(frame, result, builder.const(result.type, 1))
            reverser.reverse(primal.body.ops, frame)
            builder.yield_([frame.adjoints.get(target) or builder.zero(target.type) for target in targets])
        finish(body, context)
        if context.problems:
            lines = "\n".join(f"  {problem.loc}: {problem.text}" for problem in context.problems)
            raise AutogradError(f"{op.loc}: the gradient of '{function.name}' cannot be computed:\n{lines}")
        types = tuple(target.type for target in targets)
        made = Function(f"grad_{function.name}", params, types, body, function.loc)
        is_symmetric = len(targets) == len(params) and not any(isinstance(op, Invoke) for op in primal.walk())
        return _with_symmetric_adjoint(made) if is_symmetric and _has_reverse_loops(made) else made


def _with_symmetric_adjoint(gradient: Function) -> Function:
    """Let the adjoint of a function's derivatives be their tangent along it, if there is one."""
    plain = inline_all(gradient)
    forget_checkpoints(plain.body)
    tangent = tangent_of(plain)
    if tangent.problems:
        return gradient
    simplify(tangent.function.body)
    numbers = tuple(n for n, param in enumerate(gradient.params) if is_differentiable(param.type))
    return replace(gradient, custom_gradient=tangent.function, gradient_params=numbers)


def _has_reverse_loops(function: Function) -> bool:
    return any(isinstance(op, ReverseLoop) for op in inline_all(function).walk())


def _calling(function: Function) -> Function:
    """Wrap a function in one that only calls it, so that a custom gradient of its own is respected."""
    params = tuple(Value(param.type, param.name) for param in function.params)
    results = tuple(Value(type) for type in function.result_types)
    region = Region(params)
    region.ops.append(Invoke(loc=function.loc, results=results, operands=params, function=function))
    region.ops.append(function.body.terminator.rebuilt((), results, ()))
    return Function(function.name, params, function.result_types, region, function.loc)


def _calls_gradients(function: Function | None) -> bool:
    if function is None:
        return False
    return any(
        isinstance(op, Invoke) and (op.is_gradient or _calls_gradients(op.function)) for op in function.walk()
    ) or any(_calls_gradients(other) for other in (function.custom_gradient, function.custom_replay))


__all__ = ["expand_gradients"]
