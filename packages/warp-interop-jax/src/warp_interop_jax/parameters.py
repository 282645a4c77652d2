"""What a call of an operation gives to the parameters of its kernel or function: values, arrays and their shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from warp.errors import ArgumentError
from warp.operators import Parameter, split_element
from warp_interop_jax.bridge import DTYPES_FROM
from warp_interop_jax.plan import Layout

Dims: TypeAlias = "int | Sequence[int] | Callable[..., Any] | None"
"""Dimensions: an int, a sequence of ints, or a function of the operation's arguments that returns one of these."""
OutputDims: TypeAlias = "Dims | Mapping[str, Dims]"
Numbered: TypeAlias = "tuple[int, Parameter]"
"""A parameter and its number among all."""


# ---------------------------------------------------------------------------------------------------- arguments


def in_order(name: str, inputs: Sequence[Numbered], args: Sequence[Any], keywords: Mapping[str, Any]) -> Sequence[Any]:
    """Return the arguments of a call in the order of the inputs. Raises ArgumentError if they are not those."""
    if not keywords and len(args) == len(inputs):
        return args
    names = [parameter.name for _, parameter in inputs]
    found = dict(zip(names, args, strict=False))
    twice = [given for given in keywords if given in found or given not in names]
    found.update(keywords)
    if twice or len(args) > len(names) or len(found) != len(names):
        given = f"{len(args)} positional arguments" + (f" and {', '.join(keywords)}" if keywords else "")
        raise ArgumentError(f"{name} takes ({', '.join(names)}), but got {given}")
    return [found[key] for key in names]


def resolved(dims: Any, args: Sequence[Any]) -> Any:
    """Return dimensions, or dimensions by name, with what functions of the arguments give in place of the functions."""
    if isinstance(dims, Mapping):
        return {name: resolved(value, args) for name, value in dims.items()}
    return dims(*args) if callable(dims) else dims


def split_arguments(inputs: Sequence[Numbered], args: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
    """Return the arrays among the arguments of an operation, in order, and the values by number of the parameter.

    Raises ArgumentError for what is no array, and for values that JAX traces or has made arrays of.
    """
    pairs = list(zip(inputs, args, strict=True))
    arrays = [_as_array(parameter, given) for (_, parameter), given in pairs if parameter.is_array]
    return arrays, {
        number: _as_value(parameter, given) for (number, parameter), given in pairs if not parameter.is_array
    }


def _as_array(parameter: Parameter, given: Any) -> Any:
    if isinstance(given, jax.Array):
        return given
    if not hasattr(given, "__array__") and not hasattr(given, "__jax_array__"):
        raise ArgumentError(
            f"parameter '{parameter.name}' is {parameter.type!r} and takes an array, got {type(given).__qualname__}"
        )
    try:
        return jnp.asarray(given)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"parameter '{parameter.name}' is {parameter.type!r}: {error}") from error


def _as_value(parameter: Parameter, given: Any) -> Any:
    if isinstance(given, jax.core.Tracer):
        raise ArgumentError(
            f"parameter '{parameter.name}' is given by value, but the argument is traced by JAX; make it static: "
            f'jax.jit(function, static_argnames=["{parameter.name}"]), or let it be an array'
        )
    if isinstance(given, jax.Array):
        raise ArgumentError(
            f"parameter '{parameter.name}' is given by value, so no gradient could reach an array of JAX; pass a number"
        )
    return given


# ---------------------------------------------------------------------------------------------------- shapes


def layout_of(parameter: Parameter, array: Any) -> Layout:
    """Return the layout of an array of JAX for a parameter. Raises ArgumentError, which names it, for a misfit."""
    scalar = DTYPES_FROM.get(np.dtype(array.dtype))
    if scalar is None:
        raise ArgumentError(f"parameter '{parameter.name}': no kernel takes arrays of {array.dtype}")
    parameter.check_shape(array.shape)
    inner, wanted = split_element(parameter.element_type(array.shape, scalar))
    if scalar is not wanted:
        raise ArgumentError(
            f"parameter '{parameter.name}' is {parameter.type!r} and takes an array of {_numpy_dtype(wanted)}, got "
            f"{array.dtype}"
        )
    return Layout(tuple(array.shape[: parameter.type.ndim]), inner, np.dtype(array.dtype))


def element_of(parameter: Parameter, layout: Layout) -> Any:
    """Return the type of the elements that arrays of a layout have for a parameter."""
    return parameter.element_type(layout.full, DTYPES_FROM[layout.dtype])


def dims_of(given: Any, name: str) -> tuple[int, ...]:
    """Return dimensions given as an int or a sequence of ints. Raises ArgumentError that names the argument."""
    values = given if isinstance(given, (tuple, list)) else (given,)
    for value in values:
        if isinstance(value, (bool, jax.core.Tracer)) or not hasattr(value, "__index__") or value.__index__() < 0:
            raise ArgumentError(f"{name} must be an int or a sequence of ints that are not negative, got {given!r}")
    return tuple(int(value.__index__()) for value in values)


def output_layouts(
    outputs: Sequence[Parameter],
    inputs: Sequence[Layout],
    launch_dims: tuple[int, ...] | None,
    output_dims: OutputDims,
) -> list[Layout]:
    """Return the layouts of outputs. Raises ArgumentError, which names the output, where JAX could not make it so."""
    names = [output.name for output in outputs]
    unknown = [name for name in output_dims if name not in names] if isinstance(output_dims, Mapping) else []
    if unknown:
        raise ArgumentError(f"output_dims: there is no output '{unknown[0]}'; there are {', '.join(names)}")
    return [_output_layout(output, inputs, launch_dims, output_dims) for output in outputs]


def _output_layout(
    output: Parameter, inputs: Sequence[Layout], launch_dims: tuple[int, ...] | None, output_dims: OutputDims
) -> Layout:
    given = output_dims.get(output.name) if isinstance(output_dims, Mapping) else output_dims
    inner, dtype = _output_element(output, inputs)
    ndim = output.type.ndim
    if given is not None:
        dims = dims_of(given, "output_dims")
        if len(dims) == ndim + len(inner) and dims[ndim:] == inner:
            dims = dims[:ndim]  # as JAX has them
    else:
        shapes = [] if launch_dims is None else [launch_dims]
        shapes += [layout.shape for layout in inputs]
        dims = next((shape for shape in shapes if len(shape) == ndim), ())
    if len(dims) != ndim:
        why = "nothing tells its shape" if given is None else f"output_dims gives it {dims}"
        raise ArgumentError(f"output '{output.name}' is {output.type!r}, but {why}; give output_dims")
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ArgumentError(
            f"output '{output.name}' holds numbers of {dtype}, which JAX does not keep by default; set "
            'jax.config.update("jax_enable_x64", True)'
        )
    return Layout(dims, inner, dtype)


def _output_element(output: Parameter, inputs: Sequence[Layout]) -> tuple[tuple[int, ...], Any]:
    if not output.is_generic:
        inner, scalar = split_element(output.type.dtype)
        return inner, _numpy_dtype(scalar)
    if not inputs:
        raise ArgumentError(f"output '{output.name}' is {output.type!r}: without an input array nothing tells its type")
    return inputs[0].inner, inputs[0].dtype


def _numpy_dtype(scalar: Any) -> Any:
    return np.dtype(next(dtype for dtype, found in DTYPES_FROM.items() if found is scalar))


def known_method(vmap_method: str | None) -> str | None:
    """Return the method of `jax.vmap` that JAX is told."""
    # It leaves out the dimension of what is not batched, so that nested batches could not be told apart.
    return "expand_dims" if vmap_method == "legacy_vectorized" else vmap_method
