"""`jax_kernel`: a kernel as an operation of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp
from warp.entries import KernelEntries
from warp.errors import ArgumentError
from warp.operators import Parameter, parameters_of
from warp_interop_jax.calls import ArrayPlace, Forward, Site
from warp_interop_jax.parameters import (
    Dims,
    OutputDims,
    dims_of,
    element_of,
    in_order,
    known_method,
    layout_of,
    output_layouts,
    resolved,
    split_arguments,
)
from warp_interop_jax.plan import Layout
from warp_interop_jax.primitive import bind


class JaxKernel:
    """A kernel as an operation of JAX: call it with arrays, also inside `jax.jit`; it returns a list of arrays."""

    def __init__(
        self,
        kernel: Any,
        parameters: Sequence[Parameter],
        vmap_method: str | None,
        launch_dims: Dims,
        output_dims: OutputDims,
    ) -> None:
        self.kernel = kernel
        self.__name__ = kernel.key
        self.__doc__ = kernel.__doc__
        self._parameters = tuple(parameters)
        numbered = list(enumerate(parameters))
        self._inputs = tuple((n, parameter) for n, parameter in numbered if not parameter.is_output)
        self._outputs = tuple((n, parameter) for n, parameter in numbered if parameter.is_output)
        self._vmap_method = vmap_method
        self._launch_dims = launch_dims
        self._output_dims = output_dims
        self._entries: dict[Any, KernelEntries] = {}
        self._calls: dict[Any, Forward] = {}

    def __call__(
        self,
        *args: Any,
        launch_dims: Dims = None,
        output_dims: OutputDims = None,
        vmap_method: str | None = None,
        **keywords: Any,
    ) -> list[Any]:
        """Return the outputs, inputs that the kernel changes first.

        Raises ArgumentError, which names the parameter, for an argument that does not fit.
        """
        given = in_order(self.__name__, self._inputs, args, keywords)
        arrays, values = split_arguments(self._inputs, given)
        call = self._call_for(
            arrays,
            values,
            resolved(self._launch_dims if launch_dims is None else launch_dims, given),
            resolved(self._output_dims if output_dims is None else output_dims, given),
            self._vmap_method if vmap_method is None else vmap_method,
        )
        return bind(call, arrays)

    def _call_for(
        self, arrays: Sequence[Any], values: dict[int, Any], launch_dims: Any, output_dims: Any, vmap_method: str | None
    ) -> Forward:
        key = repr(
            (
                [(array.shape, str(array.dtype)) for array in arrays],
                [(type(value), value) for value in values.values()],
                launch_dims,
                output_dims,
                vmap_method,
            )
        )
        call = self._calls.get(key)
        if call is None:
            made = self._make_call(arrays, values, launch_dims, output_dims, vmap_method)
            call = self._calls.setdefault(key, made)
        return call

    def _make_call(
        self, arrays: Sequence[Any], values: dict[int, Any], launch_dims: Any, output_dims: Any, vmap_method: str | None
    ) -> Forward:
        given = iter(arrays)
        layouts = {n: layout_of(p, next(given)) for n, p in self._inputs if p.is_array}
        inputs = list(layouts.values())
        dims = dims_of(launch_dims, "launch_dims") if launch_dims is not None else None
        if dims is None and inputs:
            dims = inputs[0].shape
        outputs = output_layouts([p for _, p in self._outputs], inputs, dims, output_dims)
        dims = outputs[0].shape if dims is None else dims
        layouts.update((n, layout) for (n, _), layout in zip(self._outputs, outputs, strict=True))
        entries = self._entries_for(layouts, values)
        ordered = [values.get(number) for number in range(len(self._parameters))]
        places = tuple(
            ArrayPlace(n, layouts[n], p.is_output, p.is_changed) for n, p in enumerate(self._parameters) if p.is_array
        )
        return Forward(
            Site(
                entries,
                entries.arguments(ordered),
                entries.arguments(ordered, with_directions=True),
                places,
                dims,
                known_method(vmap_method),
            )
        )

    def _entries_for(self, layouts: dict[int, Layout], values: dict[int, Any]) -> KernelEntries:
        types = tuple(_type(p, layouts.get(n), values.get(n)) for n, p in enumerate(self._parameters))
        key = tuple((type.__class__, type) for type in types)
        entries = self._entries.get(key)
        if entries is None:
            entries = self._entries.setdefault(key, KernelEntries(self.kernel, types))
            written = [p.name for n, p in self._inputs if n in entries.writes and p.is_array and not p.is_changed]
            if written:
                del self._entries[key]
                raise ArgumentError(
                    f"{self.__name__} writes parameter '{written[0]}', which is an input, and arrays of JAX are "
                    f'constant; name it in in_out_argnames=["{written[0]}"], and count it in num_outputs'
                )
        return entries

    def __repr__(self) -> str:
        return f"<JAX operation of kernel {self.__name__}>"


def _type(parameter: Parameter, layout: Layout | None, value: Any) -> Any:
    if layout is not None:
        return wp.types.ArrayType(element_of(parameter, layout), parameter.type.ndim)
    if getattr(parameter.type, "size", None) is not None:
        return parameter.type
    return value if value.__class__ in (int, float) else type(value)


def jax_kernel(
    kernel: Any,
    num_outputs: int = 1,
    vmap_method: str | None = "broadcast_all",
    launch_dims: Dims = None,
    output_dims: OutputDims = None,
    in_out_argnames: Sequence[str] = (),
    enable_backward: bool = True,  # noqa: ARG001 - for programs that ask for what is always so
) -> JaxKernel:
    """Make an operation of JAX from a kernel. It can be differentiated, batched, and called inside `jax.jit`.

    Inputs come first among the kernel's parameters, then outputs, which are zeros before the launch. Arrays are arrays
    of JAX, vectors and matrices their last dimensions; values must be static.

    Args:
        kernel: The kernel.
        num_outputs: Number of outputs, those in `in_out_argnames` included.
        vmap_method: How `jax.vmap` batches it: "broadcast_all", "expand_dims", "sequential" or another that JAX knows.
        launch_dims: Threads: an int, a tuple, or a function of the arguments that returns one; by default the shape of
            the first input array.
        output_dims: Shape of the outputs, given likewise, or by name of the output; with or without the dimensions of
            vectors and matrices. By default `launch_dims`, or the shape of the first input of as many dimensions.
        in_out_argnames: Inputs that the kernel changes; they are returned as they are after the launch.
        enable_backward: Accepted for programs that ask for it; there are always gradients.

    `launch_dims`, `output_dims` and `vmap_method` can be given at a call as well.

    Raises:
        ArgumentError: The kernel has parameters that JAX has nothing for, or the number of outputs does not fit.
    """
    if not isinstance(kernel, wp.Kernel):
        raise ArgumentError(f"jax_kernel takes a kernel, got {type(kernel).__qualname__}; for a function: jax_callable")
    parameters = parameters_of(kernel, num_outputs, in_out_argnames or (), takes_generic_values=True)
    return JaxKernel(kernel, parameters, vmap_method, launch_dims, output_dims)
