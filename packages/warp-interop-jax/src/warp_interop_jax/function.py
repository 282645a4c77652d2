"""`jax_callable`: a Python function that launches kernels as an operation of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import warp as wp
from warp.errors import ArgumentError
from warp.operators import Computation
from warp_interop_jax.function_calls import FunctionForward, FunctionSite
from warp_interop_jax.parameters import (
    OutputDims,
    element_of,
    in_order,
    known_method,
    layout_of,
    output_layouts,
    resolved,
    split_arguments,
)
from warp_interop_jax.primitive import bind


class JaxCallable:
    """A Python function as an operation of JAX: call it with arrays, also inside `jax.jit`; it returns a list."""

    def __init__(
        self, computation: Computation, is_graph_compatible: bool, vmap_method: str | None, output_dims: OutputDims
    ) -> None:
        self.function = computation.function
        self.__name__ = computation.name
        self.__doc__ = computation.function.__doc__
        self._computation = computation
        self._inputs = list(enumerate(computation.inputs))
        self._is_graph_compatible = is_graph_compatible
        self._vmap_method = vmap_method
        self._output_dims = output_dims

    def __call__(
        self, *args: Any, output_dims: OutputDims = None, vmap_method: str | None = None, **keywords: Any
    ) -> list[Any]:
        """Return the outputs, inputs that the function changes first.

        Raises ArgumentError, which names the parameter, for an argument that does not fit.
        """
        given = in_order(self.__name__, self._inputs, args, keywords)
        arrays, values = split_arguments(self._inputs, given)
        following = iter(arrays)
        inputs = {place: layout_of(p, next(following)) for place, p in self._inputs if p.is_array}
        found = list(inputs.values())
        chosen = resolved(self._output_dims if output_dims is None else output_dims, given)
        outputs = output_layouts(self._computation.outputs, found, found[0].shape if found else None, chosen)
        layouts = [inputs.get(place) for place, _ in self._inputs] + outputs
        parameters = [*self._computation.inputs, *self._computation.outputs]
        types = [
            None if layout is None else element_of(p, layout) for p, layout in zip(parameters, layouts, strict=True)
        ]
        ordered = tuple(values.get(place) for place, _ in self._inputs)
        site = FunctionSite(
            self._computation,
            f"{getattr(self.function, '__module__', '')}.{getattr(self.function, '__qualname__', self.__name__)}",
            tuple(layouts),
            tuple(types),
            ordered,
            repr([(type(value), value) for value in ordered]),
            self._is_graph_compatible,
            known_method(self._vmap_method if vmap_method is None else vmap_method),
        )
        return bind(FunctionForward(site), arrays)

    def __repr__(self) -> str:
        return f"<JAX operation of function {self.__name__}>"


def jax_callable(
    func: Callable[..., Any],
    num_outputs: int = 1,
    graph_compatible: bool = True,
    vmap_method: str | None = "broadcast_all",
    output_dims: OutputDims = None,
    in_out_argnames: Sequence[str] = (),
) -> JaxCallable:
    """Make an operation of JAX from a Python function that launches kernels.

    Its parameters are annotated as a kernel's are, inputs first, then outputs, which are zeros when it is called. It is
    called with Warp arrays of JAX's memory. Derivatives need warp-autograd.

    Args:
        func: The function. It must not wait for another computation of JAX.
        num_outputs: Number of outputs, those in `in_out_argnames` included.
        graph_compatible: Whether a CUDA graph may capture what it does.
        vmap_method: How `jax.vmap` batches it, as for `jax_kernel`; also at a call.
        output_dims: Shape of the outputs, as for `jax_kernel`, also at a call; by default that of the first input.
        in_out_argnames: Inputs that the function changes; they are returned as they are afterwards.

    Raises:
        ArgumentError: The function has parameters that JAX has nothing for, or the number of outputs does not fit.
    """
    if isinstance(func, wp.Kernel) or not callable(func):
        raise ArgumentError(f"jax_callable takes a function, got {type(func).__qualname__}; for a kernel: jax_kernel")
    computation = Computation(func, num_outputs, in_out_argnames=in_out_argnames or ())
    return JaxCallable(computation, graph_compatible, vmap_method, output_dims)
