"""The tests of one-call operators, which are part of those that every bridge passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

import warp as wp
from warp.errors import ArgumentError
from warp.testing import operator_cases as kernels
from warp.testing.bridge_tests import BridgeTests
from warp.testing.checks import assert_raises, central_differences, for_all
from warp.testing.numbers import require_hypothesis
from warp.testing.operator_cases import PLANES, OperatorCase, operator_cases

_TOLERANCES = {wp.float32: 2e-3, wp.float64: 1e-6}
Layout = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class OperatorConformance(BridgeTests):
    """Tests of what `make_operator` returns; there are none for a bridge without operators."""

    examples: ClassVar[int]
    layouts: ClassVar[Mapping[str, Layout]] = {}
    """Operations of the framework that give tensors with other strides, and the same ones of NumPy, by name.

    Each takes and returns two dimensions, and the framework's differentiation knows it. Slices with steps are tried
    anyway.
    """
    takes_no_inputs: ClassVar[bool] = False
    """Whether an operator may have no inputs, because something else tells the shape of its outputs."""

    def make_operator(self, function: Any, **options: Any) -> Callable[..., Any] | None:
        """Return what the bridge's one-call operator makes of a kernel or function, None if the bridge has none."""
        return None

    def differentiate(self, run: Callable[..., Any], inputs: Sequence[Any], adjoints: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients that the framework's own differentiation gives, as NumPy arrays.

        `run` takes tensors of the values `inputs`, and returns a tensor or a tuple of them; `adjoints` are values of
        the adjoints of those, None where they are integers.
        """
        raise NotImplementedError("a bridge with operators overrides `differentiate`")

    def _floats(self) -> list[Any]:
        raise NotImplementedError

    # ------------------------------------------------------------------ values and gradients

    def test_operators_compute_what_their_functions_do(self) -> None:
        """Operators of vectors, values, indices, changed inputs and several launches give NumPy's results."""
        for scalar in self._floats():
            for name, case in operator_cases(scalar).items():
                operate = self.make_operator(case.function, **case.options)
                if operate is None:
                    return
                results = _as_tuple(operate(*self._arguments(case)))
                for result, wanted in zip(results, case.reference(*case.arguments), strict=True):
                    found = self.values_of(result)
                    assert found.dtype == wanted.dtype, name
                    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=name)

    def test_gradients_of_operators_are_those_of_their_functions(self) -> None:
        """Gradients that the framework takes through an operator are float64 central differences of NumPy's results."""
        for scalar in self._floats():
            for name, case in operator_cases(scalar).items():
                operate = self.make_operator(case.function, **case.options)
                if operate is None:
                    return
                self._assert_gradients(name, scalar, case, operate)

    def test_gradients_of_operators_hold_for_every_layout(self) -> None:
        """They do so for drawn kernels, types, shapes and strides."""
        st = require_hypothesis()
        operators: dict[Any, Any] = {
            function: self.make_operator(function, launch_dims=_shape_of) for function in PLANES
        }
        if None in operators.values():
            return
        cases = st.tuples(
            st.sampled_from(sorted(PLANES, key=lambda function: str(function.__name__))),
            st.sampled_from(self._floats()),
            st.sampled_from(["rows", "steps", "columns", *sorted(self.layouts)]),
            st.tuples(st.integers(1, 3), st.integers(1, 3)),
            st.integers(0, 2**16),
        )

        def check(case: Any) -> None:
            function, scalar, layout, shape, seed = case
            arrange, arrange_values = self._layout(layout)
            # Steps of 1/16 keep apart the branches that a kernel chooses between.
            values: Any = np.random.default_rng(seed).integers(-24, 25, shape) / 16 + 0.01
            x = values.astype(wp.dtype_to_numpy(scalar))
            weights = _weights(arrange_values(x).shape, x.dtype)
            (found,) = self.differentiate(lambda tensor: operators[function](arrange(tensor)), [x], [weights])
            wanted = central_differences(
                lambda x: np.sum(weights * PLANES[function](arrange_values(x))), x.astype(np.float64)
            )
            _assert_close(found, wanted, scalar, f"{function.__name__}, {layout}")

        for_all(cases, check, self.examples)

    def test_operators_of_nothing(self) -> None:
        """Tensors without elements give results without elements, and gradients likewise."""
        for scalar in self._floats():
            operate = self.make_operator(kernels.wave, launch_dims=_shape_of)
            if operate is None:
                return
            empty: Any = np.zeros((0, 3), wp.dtype_to_numpy(scalar))
            assert self.values_of(operate(self.make_tensor(empty))).shape == (0, 3)
            (gradient,) = self.differentiate(operate, [empty], [empty])
            assert gradient.shape == (0, 3)

    # ------------------------------------------------------------------ what stays as it was

    def test_operators_change_no_input_and_no_tape(self) -> None:
        """The tensor of a changed input keeps its values, and a tape outside records nothing."""
        case = operator_cases(self._floats()[0])["changed input"]
        operate = self.make_operator(case.function, **case.options)
        if operate is None:
            return
        tensors = self._arguments(case)
        with wp.Tape() as tape:
            operate(*tensors)
        assert not tape.events
        for tensor, values in zip(tensors, case.arguments, strict=True):
            np.testing.assert_array_equal(self.values_of(tensor), values)

    # ------------------------------------------------------------------ arguments

    def test_generic_operators_take_what_comes(self) -> None:
        """Parameters of any type take numbers of every type, and vectors from a trailing dimension."""
        operate = self.make_operator(kernels.twice_any, launch_dims=lambda x: x.shape[0])
        if operate is None:
            return
        for scalar in (*self._floats(), wp.int32):
            for shape in ((3,), (3, 2)):
                values: Any = np.ones(shape, wp.dtype_to_numpy(scalar))
                found = self.values_of(operate(self.make_tensor(values)))
                assert found.dtype == values.dtype
                np.testing.assert_array_equal(found, 2 * values)

    def test_operators_take_keywords(self) -> None:
        """Arguments may be given by name."""
        case = operator_cases(self._floats()[0])["two outputs"]
        operate = self.make_operator(case.function, **case.options)
        if operate is None:
            return
        a, b, scale = self._arguments(case)
        found = operate(a, scale=scale, b=b)
        for result, wanted in zip(found, operate(a, b, scale), strict=True):
            np.testing.assert_array_equal(self.values_of(result), self.values_of(wanted))

    def test_wrong_arguments_are_named(self) -> None:
        """Tensors of other types, shapes and ranks, and too many arguments, raise an ArgumentError that says so."""
        case = operator_cases(self._floats()[0])["vectors"]
        operate = self.make_operator(case.function)
        if operate is None:
            return
        points = case.arguments[0]
        for wrong, text in (
            (points.astype(np.int32), "'xy'"),
            (points[:, :1].copy(), "'xy'"),
            (points[0].copy(), "'xy'"),
        ):
            assert_raises(ArgumentError, lambda wrong=wrong: operate(self.make_tensor(wrong)), text)  # type: ignore[misc]  # binds the value now
        assert_raises(ArgumentError, lambda: operate([1.0, 2.0]), "list")
        assert_raises(ArgumentError, lambda: operate(self.make_tensor(points), 1), "takes (xy)")

    def test_inputs_that_are_written_must_be_declared(self) -> None:
        """A kernel that writes an input which is not named in `in_out_argnames` is refused."""
        case = operator_cases(self._floats()[0])["changed input"]
        operate = self.make_operator(kernels.write_input)
        if operate is None:
            return
        values = case.arguments[0]
        tensor = self.make_tensor(values)
        assert_raises(ArgumentError, lambda: operate(tensor), "'x'")
        np.testing.assert_array_equal(self.values_of(tensor), values)

    def test_outputs_of_other_dimensions_need_a_shape(self) -> None:
        """The shape of the launch is taken for that of the outputs only where it fits."""
        case = operator_cases(self._floats()[0])["two outputs"]
        operate = self.make_operator(case.function, num_outputs=2)
        if operate is not None:
            assert_raises(ArgumentError, lambda: operate(*self._arguments(case)), "output_dims")

    def test_tensors_in_place_of_values_are_refused(self) -> None:
        """No gradient could reach them."""
        case = operator_cases(self._floats()[0])["two outputs"]
        operate = self.make_operator(case.function, **case.options)
        if operate is None:
            return
        a, b, _ = self._arguments(case)
        assert_raises(
            ArgumentError, lambda: operate(a, b, self.make_tensor(case.arguments[0][0, :1].copy())), "'scale'"
        )

    def test_what_cannot_be_an_operator(self) -> None:
        """Neither a number, nor a function without annotations or inputs, nor outputs that are not there."""
        case = operator_cases(self._floats()[0])["vectors"]
        if self.make_operator(case.function) is None:
            return
        for function, options, text in (
            (3, {}, "int"),
            (lambda x, y: None, {}, "no annotation"),
            (case.function, {"num_outputs": 0}, "num_outputs"),
            (case.function, {"num_outputs": 3}, "num_outputs")
            if self.takes_no_inputs
            else (case.function, {"num_outputs": 2}, "at least one input"),
            (case.function, {"in_out_argnames": ["w"]}, "'w'"),
        ):
            assert_raises(ArgumentError, lambda f=function, o=options: self.make_operator(f, **o), text)  # type: ignore[misc]  # binds the values now

    # ------------------------------------------------------------------ helpers

    def _arguments(self, case: OperatorCase) -> list[Any]:
        return [self.make_tensor(value) if isinstance(value, np.ndarray) else value for value in case.arguments]

    def _layout(self, name: str) -> Layout:
        index = {"rows": (slice(None), slice(None)), "steps": (slice(None, None, 2), slice(None))}
        index["columns"] = (slice(None), slice(None, None, 2))
        if name not in index:
            return self.layouts[name]
        return lambda tensor: self.view(tensor, index[name]), lambda values: values[index[name]]

    def _assert_gradients(self, name: str, scalar: Any, case: OperatorCase, operate: Callable[..., Any]) -> None:
        places = [place for place, value in enumerate(case.arguments) if _is_float(value)]
        floats = [case.arguments[place] for place in places]
        results = case.reference(*case.arguments)
        weights = [_weights(result.shape, result.dtype) if _is_float(result) else None for result in results]
        integers = {
            place: self.make_tensor(value)
            for place, value in enumerate(case.arguments)
            if isinstance(value, np.ndarray) and place not in places
        }

        def arguments(inputs: Sequence[Any], others: Mapping[int, Any]) -> list[Any]:
            given = {**dict(enumerate(case.arguments)), **others, **dict(zip(places, inputs, strict=True))}
            return [given[place] for place in range(len(case.arguments))]

        found = self.differentiate(lambda *tensors: operate(*arguments(tensors, integers)), floats, weights)
        for number, gradient in enumerate(found):

            def loss(x: Any, number: int = number) -> Any:
                inputs = [x if place == number else value.astype(np.float64) for place, value in enumerate(floats)]
                pairs = zip(weights, case.reference(*arguments(inputs, {})), strict=True)
                return sum(np.sum(weight * result) for weight, result in pairs if weight is not None)

            wanted = central_differences(loss, floats[number].astype(np.float64))
            _assert_close(gradient, wanted, scalar, f"{name}, input {number}")


def _shape_of(x: Any) -> Any:
    return x.shape


def _as_tuple(results: Any) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (tuple, list)) else (results,)


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _weights(shape: tuple[int, ...], dtype: Any) -> Any:
    return (1.0 + np.arange(np.prod(shape, dtype=int)) % 7).reshape(shape).astype(dtype)


def _assert_close(found: Any, wanted: Any, scalar: Any, message: str) -> None:
    tolerance = _TOLERANCES[scalar]
    scale = 1 + np.abs(wanted).max(initial=0.0)
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=message)
