"""`jax_kernel`: a kernel as an operation of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp
from warp.entries import KernelEntries
from warp.errors import ArgumentError
from warp_interop_jax.calls import ArrayPlace, Forward, Site
from warp_interop_jax.parameters import (
    Dims,
    OutputDims,
    Parameter,
    dims_of,
    element_type,
    is_concrete,
    known_method,
    output_layouts,
    parameters_of,
    require_representable,
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
        self._inputs = tuple(parameter for parameter in parameters if not parameter.is_output)
        self._outputs = tuple(parameter for parameter in parameters if parameter.is_output)
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
    ) -> list[Any]:
        """Return the outputs, inputs that the kernel changes first.

        Raises ArgumentError, which names the parameter, for an argument that does not fit.
        """
        arrays, values = split_arguments(self.__name__, self._inputs, args)
        call = self._call_for(
            arrays,
            values,
            self._launch_dims if launch_dims is None else launch_dims,
            self._output_dims if output_dims is None else output_dims,
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
        inputs = [(p, p.layout_of(next(given))) for p in self._inputs if p.is_array]
        dims = dims_of(launch_dims, "launch_dims") if launch_dims is not None else None
        if dims is None and inputs:
            dims = inputs[0][1].shape
        outputs = output_layouts(self._outputs, inputs, dims, output_dims)
        if dims is None:
            dims = outputs[0].shape if output_dims is not None else None
        if dims is None:
            raise ArgumentError(f"{self.__name__} has no input array, so give launch_dims")
        layouts = {parameter.number: layout for parameter, layout in inputs}
        for parameter, layout in zip(self._outputs, outputs, strict=True):
            require_representable(parameter.name, layout.dtype)
            layouts[parameter.number] = layout
        entries = self._entries_for(layouts, values)
        ordered = [values.get(parameter.number) for parameter in self._parameters]
        places = tuple(
            ArrayPlace(p.number, layouts[p.number], p.is_output, p.is_changed) for p in self._parameters if p.is_array
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
        types = tuple(
            _type(parameter, layouts.get(parameter.number), values.get(parameter.number))
            for parameter in self._parameters
        )
        key = tuple((type.__class__, type) for type in types)
        entries = self._entries.get(key)
        if entries is None:
            entries = self._entries.setdefault(key, KernelEntries(self.kernel, types))
            written = [p.name for p in self._inputs if p.number in entries.writes and p.is_array and not p.is_changed]
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
        dtype = parameter.type.dtype if is_concrete(parameter.type.dtype) else element_type(layout)
        return wp.types.ArrayType(dtype, parameter.type.ndim)
    if is_concrete(parameter.type):
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
        launch_dims: Threads, an int or a tuple; by default the shape of the first input array.
        output_dims: Shape of the outputs, an int or a tuple, or by name of the output; with or without the dimensions
            of vectors and matrices. By default `launch_dims`, or the shape of the first input of as many dimensions.
        in_out_argnames: Inputs that the kernel changes; they are returned as they are after the launch.
        enable_backward: Accepted for programs that ask for it; there are always gradients.

    `launch_dims`, `output_dims` and `vmap_method` can be given at a call as well.

    Raises:
        ArgumentError: The kernel has parameters that JAX has nothing for, or the number of outputs does not fit.
    """
    if not isinstance(kernel, wp.Kernel):
        raise ArgumentError(f"jax_kernel takes a kernel, got {type(kernel).__qualname__}; for a function: jax_callable")
    return JaxKernel(
        kernel, parameters_of(kernel, num_outputs, in_out_argnames or ()), vmap_method, launch_dims, output_dims
    )
