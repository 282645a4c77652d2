"""The parameters of a kernel or annotated function as JAX sees them, and the shapes that a call gives them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

import warp as wp
from warp.errors import ArgumentError
from warp_interop_jax.bridge import DTYPES_FROM
from warp_interop_jax.plan import Layout

Dims: TypeAlias = "int | Sequence[int] | None"
OutputDims: TypeAlias = "Dims | Mapping[str, Dims]"

_KINDS = frozenset("fiub")
_PYTHON_TYPES: dict[Any, Any] = {float: wp.float32, int: wp.int32, bool: wp.bool}


@dataclass(frozen=True)
class Parameter:
    """One parameter: an array or a value, read or written."""

    name: str
    type: Any
    number: int
    is_array: bool
    is_output: bool
    is_changed: bool
    """Whether it is an input that the function changes, which is given back as an output."""

    @property
    def text(self) -> str:
        """Return the type in words."""
        return str(getattr(self.type, "name", None) or self.type)

    def layout_of(self, array: Any) -> Layout:
        """Return the layout of an array of JAX given for this parameter. Raises ArgumentError if it does not fit."""
        scalar = DTYPES_FROM.get(np.dtype(array.dtype))
        if scalar is None:
            raise ArgumentError(f"parameter '{self.name}': no kernel takes arrays of {array.dtype}")
        inner, wanted = self._element(array)
        rank = self.type.ndim + len(inner)
        if wanted is not None and scalar is not wanted:
            raise ArgumentError(
                f"parameter '{self.name}' is {self.text} and takes an array of {jnp.dtype(_dtype(wanted))}, "
                f"got {array.dtype}"
            )
        if array.ndim != rank or tuple(array.shape[self.type.ndim :]) != inner:
            trailing = f" whose last dimensions are {inner}" if inner else ""
            raise ArgumentError(
                f"parameter '{self.name}' is {self.text} and takes an array of {rank} dimensions{trailing}, "
                f"got shape {tuple(array.shape)}"
            )
        return Layout(tuple(array.shape[: self.type.ndim]), inner, np.dtype(array.dtype))

    def _element(self, array: Any) -> tuple[tuple[int, ...], Any]:
        if is_concrete(self.type.dtype):
            return element(self.type.dtype)
        inner = tuple(array.shape[self.type.ndim :])
        if array.ndim < self.type.ndim or len(inner) > 2:
            raise ArgumentError(
                f"parameter '{self.name}' is {self.text} and takes an array of {self.type.ndim} dimensions, besides "
                f"one of vectors or two of matrices, got shape {tuple(array.shape)}"
            )
        return inner, None

    def value(self, given: Any) -> Any:
        """Return a value as a kernel takes it. Raises ArgumentError for one that is traced: it must be static."""
        if isinstance(given, jax.core.Tracer):
            raise ArgumentError(
                f"parameter '{self.name}' is {self.text}, given by value, but the argument is traced by JAX; make it "
                f'static: jax.jit(function, static_argnames=["{self.name}"]), or pass it as an array'
            )
        if isinstance(given, jax.Array):
            numbers: Any = np.asarray(given).tolist()
            return numbers
        return given


def is_concrete(dtype: Any) -> bool:
    """Say whether an element type is no type variable and no Any."""
    return getattr(dtype, "size", None) is not None and not getattr(dtype, "generic", False)


def element(dtype: Any) -> tuple[tuple[int, ...], Any]:
    """Return the dimensions that an element adds to an array, and its scalar type. Raises ArgumentError for structs."""
    scalar = getattr(dtype, "scalar", None)
    if scalar is not None:
        return tuple(dtype.shape), scalar
    if getattr(dtype, "kind", None) in _KINDS:
        return (), dtype
    raise ArgumentError(f"JAX has no arrays of {getattr(dtype, 'name', dtype)}")


def element_type(layout: Layout) -> Any:
    """Return the type of the elements that JAX's arrays of a layout have for a generic parameter."""
    scalar = DTYPES_FROM[layout.dtype]
    if not layout.inner:
        return scalar
    if len(layout.inner) == 1:
        return wp.types.vector(layout.inner[0], scalar)
    return wp.types.matrix((layout.inner[0], layout.inner[1]), scalar)


def _dtype(scalar: Any) -> Any:
    return next(dtype for dtype, found in DTYPES_FROM.items() if found is scalar)


# ---------------------------------------------------------------------------------------------------- declarations


def parameters_of(function: Any, num_outputs: int, changed: Sequence[str]) -> tuple[Parameter, ...]:
    """Return the parameters of a kernel or annotated Python function.

    The last `num_outputs`, less those in `changed`, are outputs. Raises ArgumentError for what JAX has nothing for.
    """
    named = list(_named_types(function))
    names = [name for name, _ in named]
    for name in changed:
        if name not in names:
            raise ArgumentError(f"in_out_argnames: there is no parameter '{name}'; there are {', '.join(names)}")
    fresh = num_outputs - len(changed)
    if num_outputs < 1 or fresh < 0 or fresh > len(named):
        raise ArgumentError(
            f"num_outputs counts the outputs, those in in_out_argnames included; got {num_outputs} for {len(named)} "
            f"parameters and in_out_argnames={list(changed)}"
        )
    first = len(named) - fresh
    return tuple(_parameter(name, type, n, n >= first, name in changed) for n, (name, type) in enumerate(named))


def _named_types(function: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(function, wp.Kernel):
        yield from function.parameters
        return
    for name, parameter in _signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise ArgumentError(f"parameter '{name}' of {function.__qualname__} must be an ordinary parameter")
        yield name, _PYTHON_TYPES.get(parameter.annotation, parameter.annotation)


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise ArgumentError(
            f"the annotations of {function.__qualname__} cannot be read: {error}; they must be known where the module "
            "was defined"
        ) from error


def _parameter(name: str, type: Any, number: int, is_output: bool, is_changed: bool) -> Parameter:
    is_array = isinstance(type, wp.types.ArrayType)
    made = Parameter(name, type, number, is_array, is_output, is_changed)
    if not is_array and (is_output or is_changed):
        raise ArgumentError(f"parameter '{name}' is an output and must be an array, got {_text(type)}")
    if is_array:
        if is_concrete(type.dtype):
            element(type.dtype)
    elif is_concrete(type) and getattr(getattr(type, "scalar", type), "kind", None) not in _KINDS:
        raise ArgumentError(f"parameter '{name}' of type {_text(type)} has no counterpart in JAX")
    elif type is inspect.Parameter.empty:
        raise ArgumentError(f"parameter '{name}' must be annotated as a kernel's would be")
    return made


def _text(type: Any) -> str:
    return "no annotation" if type is inspect.Parameter.empty else str(getattr(type, "name", None) or type)


# ---------------------------------------------------------------------------------------------------- arguments


def split_arguments(name: str, inputs: Sequence[Parameter], args: Sequence[Any]) -> tuple[list[Any], dict[int, Any]]:
    """Return the arrays among the arguments of an operation, in order, and the values by number of the parameter.

    Raises ArgumentError for a wrong number of arguments, for what is no array, and for values that are traced.
    """
    if len(args) != len(inputs):
        names = ", ".join(parameter.name for parameter in inputs)
        raise ArgumentError(f"{name} takes {len(inputs)} inputs ({names}), but got {len(args)}")
    arrays = [_as_array(p, given) for p, given in zip(inputs, args, strict=True) if p.is_array]
    return arrays, {p.number: p.value(given) for p, given in zip(inputs, args, strict=True) if not p.is_array}


def _as_array(parameter: Parameter, given: Any) -> Any:
    if isinstance(given, jax.Array):
        return given
    if isinstance(given, (str, bytes)) or given is None:
        raise ArgumentError(f"parameter '{parameter.name}' is {parameter.text} and takes an array, got {given!r}")
    try:
        return jnp.asarray(given)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"parameter '{parameter.name}' is {parameter.text}: {error}") from error


# ---------------------------------------------------------------------------------------------------- shapes


def dims_of(given: Any, name: str) -> tuple[int, ...]:
    """Return dimensions given as an int or a sequence of ints. Raises ArgumentError that names the argument."""
    values = given if isinstance(given, (tuple, list)) else (given,)
    for value in values:
        if isinstance(value, (bool, jax.core.Tracer)) or not hasattr(value, "__index__") or value.__index__() < 0:
            raise ArgumentError(f"{name} must be an int or a sequence of ints that are not negative, got {given!r}")
    return tuple(int(value.__index__()) for value in values)


def output_layouts(
    outputs: Sequence[Parameter],
    inputs: Sequence[tuple[Parameter, Layout]],
    launch_dims: tuple[int, ...] | None,
    output_dims: OutputDims,
) -> list[Layout]:
    """Return the layouts of outputs. Raises ArgumentError, which names the output, where the shape is not known."""
    if isinstance(output_dims, Mapping):
        unknown = [name for name in output_dims if name not in [output.name for output in outputs]]
        if unknown:
            raise ArgumentError(
                f"output_dims: there is no output '{unknown[0]}'; there are {', '.join(o.name for o in outputs)}"
            )
    return [_output_layout(output, inputs, launch_dims, output_dims) for output in outputs]


def _output_layout(
    output: Parameter,
    inputs: Sequence[tuple[Parameter, Layout]],
    launch_dims: tuple[int, ...] | None,
    output_dims: OutputDims,
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
        shapes += [layout.shape for _, layout in inputs]
        dims = next((shape for shape in shapes if len(shape) == ndim), ())
    if len(dims) != ndim:
        shown = "nothing tells its shape" if given is None else f"output_dims gives it {dims}"
        raise ArgumentError(f"output '{output.name}' is {output.text}, but {shown}; give output_dims")
    return Layout(dims, inner, dtype)


def _output_element(output: Parameter, inputs: Sequence[tuple[Parameter, Layout]]) -> tuple[tuple[int, ...], Any]:
    if is_concrete(output.type.dtype):
        inner, scalar = element(output.type.dtype)
        return inner, np.dtype(_dtype(scalar))
    if not inputs:
        raise ArgumentError(f"output '{output.name}' is {output.text}: without an input array nothing tells its type")
    return inputs[0][1].inner, inputs[0][1].dtype


def known_method(vmap_method: str | None) -> str | None:
    """Return the method of `jax.vmap` that JAX is told."""
    # It leaves out the dimension of what is not batched, so that nested batches could not be told apart.
    return "expand_dims" if vmap_method == "legacy_vectorized" else vmap_method


def require_representable(name: str, dtype: Any) -> None:
    """Raise ArgumentError if JAX would make a smaller type of the dtype of an output."""
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ArgumentError(
            f"output '{name}' holds numbers of {dtype}, which JAX does not keep by default; set "
            'jax.config.update("jax_enable_x64", True)'
        )
