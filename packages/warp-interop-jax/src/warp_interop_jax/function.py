"""`jax_callable`: a Python function that launches kernels as an operation of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import warp as wp
from warp.errors import ArgumentError
from warp_interop_jax.function_calls import FunctionForward, FunctionSite
from warp_interop_jax.parameters import (
    OutputDims,
    Parameter,
    element_type,
    is_concrete,
    known_method,
    output_layouts,
    parameters_of,
    require_representable,
    split_arguments,
)
from warp_interop_jax.primitive import bind


class JaxCallable:
    """A Python function as an operation of JAX: call it with arrays, also inside `jax.jit`; it returns a list."""

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: Sequence[Parameter],
        is_graph_compatible: bool,
        vmap_method: str | None,
        output_dims: OutputDims,
    ) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "function")
        self.__doc__ = function.__doc__
        self._parameters = tuple(parameters)
        self._inputs = tuple(parameter for parameter in parameters if not parameter.is_output)
        self._outputs = tuple(parameter for parameter in parameters if parameter.is_output)
        self._is_graph_compatible = is_graph_compatible
        self._vmap_method = vmap_method
        self._output_dims = output_dims

    def __call__(self, *args: Any, output_dims: OutputDims = None, vmap_method: str | None = None) -> list[Any]:
        """Return the outputs, inputs that the function changes first.

        Raises ArgumentError, which names the parameter, for an argument that does not fit.
        """
        arrays, values = split_arguments(self.__name__, self._inputs, args)
        inputs = [
            (p, p.layout_of(array)) for p, array in zip((p for p in self._inputs if p.is_array), arrays, strict=True)
        ]
        dims = inputs[0][1].shape if inputs else None
        chosen = self._output_dims if output_dims is None else output_dims
        outputs = output_layouts(self._outputs, inputs, dims, chosen)
        layouts = {parameter.number: layout for parameter, layout in inputs}
        for parameter, layout in zip(self._outputs, outputs, strict=True):
            require_representable(parameter.name, layout.dtype)
            layouts[parameter.number] = layout
        types = [
            None if not p.is_array else p.type.dtype if is_concrete(p.type.dtype) else element_type(layouts[p.number])
            for p in self._parameters
        ]
        ordered = tuple(values.get(parameter.number) for parameter in self._parameters)
        site = FunctionSite(
            self.function,
            f"{getattr(self.function, '__module__', '')}.{getattr(self.function, '__qualname__', self.__name__)}",
            self._parameters,
            tuple(layouts.get(parameter.number) for parameter in self._parameters),
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
        raise ArgumentError(f"jax_callable takes a function, got {func!r:.80}; for a kernel: jax_kernel")
    parameters = parameters_of(func, num_outputs, in_out_argnames or ())
    return JaxCallable(func, parameters, graph_compatible, vmap_method, output_dims)
