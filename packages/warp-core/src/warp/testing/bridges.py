"""The tests that every bridge to a framework passes."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

import warp as wp
from warp.errors import ArgumentError
from warp.testing import bridge_kernels as kernels
from warp.testing.checks import assert_raises, central_differences, for_all
from warp.testing.foreign_writes import WriteConformance
from warp.testing.numbers import require_hypothesis
from warp.testing.operators import OperatorConformance
from warp.testing.strategies import shapes

_SCALARS = (
    wp.bool,
    wp.int8,
    wp.int16,
    wp.int32,
    wp.int64,
    wp.uint8,
    wp.uint16,
    wp.uint32,
    wp.uint64,
    wp.float16,
    wp.float32,
    wp.float64,
)


class BridgeConformance(OperatorConformance, WriteConformance):
    """Tests for pytest: subclass, set `bridge`, and say how the framework makes and reads tensors.

    The tests draw shapes, strides, types and values with hypothesis. Those of gradients need warp-autograd. Where the
    bridge has an operator that makes kernels differentiable in one call, override `make_operator` and `differentiate`.
    """

    is_writable: ClassVar[bool] = True
    """Whether tensors can be written through Warp."""
    max_dimensions: ClassVar[int] = 3
    """The most dimensions that a tensor can have, at least 1."""
    examples: ClassVar[int] = 25
    """How many examples hypothesis draws in each test."""

    def gradient(self, launch: Callable[[Any, Any], object], values: Any) -> Any:
        """Return the gradient of the sum of y for `launch(x, y)`, taken through the framework.

        By default a tape differentiates, and the gradient arrives in the framework's tensor. Override it with an
        operator of the framework where there is one.
        """
        tensor = self.make_tensor(values)
        x = self._from(tensor, requires_grad=True)
        y = wp.zeros(x.shape, dtype=x.dtype, requires_grad=True)
        with wp.Tape() as tape:
            launch(x, y)
        tape.backward(grads={y: wp.ones(x.shape, dtype=x.dtype)})
        gradients = self.bridge.gradients
        assert gradients is not None
        return self.values_of(gradients.get(tensor))

    # ------------------------------------------------------------------ types and devices

    def test_every_dtype_goes_there_and_back(self) -> None:
        """Types of the framework lead to a Warp type, and those of Warp back to one of the same size."""
        assert self.bridge.dtypes_from
        for foreign, scalar in self.bridge.dtypes_from.items():
            assert self._call("dtype_from", foreign) is scalar
            back = self._call("dtype_from", self._call("dtype_to", scalar))
            assert wp.zeros(1, dtype=back).element.size == wp.zeros(1, dtype=scalar).element.size
            assert wp.dtype_to_numpy(back)().dtype.kind in _like(wp.dtype_to_numpy(scalar)().dtype.kind)

    def test_other_dtypes_are_type_errors(self) -> None:
        """What is no data type raises a TypeError."""
        assert_raises(TypeError, lambda: self._call("dtype_from", object()))
        assert_raises(TypeError, lambda: self._call("dtype_to", wp.vec3))
        assert_raises(TypeError, lambda: self._call("dtype_to", "no dtype"))

    def test_the_cpu_goes_there_and_back(self) -> None:
        """The framework's CPU device is Warp's."""
        device = self._call("device_to", "cpu")
        assert self._call("device_from", device) is wp.get_device("cpu")
        if isinstance(device, self.bridge.device_types):
            assert wp.get_device(device) is wp.get_device("cpu")

    def test_other_devices_are_runtime_errors(self) -> None:
        """What is no device raises a RuntimeError."""
        assert_raises(RuntimeError, lambda: self._call("device_to", "no device"))
        assert_raises(RuntimeError, lambda: self._call("device_from", "no device"))

    def test_streams(self) -> None:
        """The CPU has no streams; those of CUDA devices keep their handles."""
        for name in ("stream_from", "stream_to"):
            assert_raises(RuntimeError, lambda name=name: self._call(name, "cpu"))  # type: ignore[misc]  # binds the name now
        for device in wp.get_cuda_devices():
            stream = self._call("stream_from", device)
            assert self._call("stream_from", self._call("stream_to", stream)).cuda_stream == stream.cuda_stream

    # ------------------------------------------------------------------ tensors to arrays

    def test_tensors_become_arrays(self) -> None:
        """An array has type, shape, values and memory of the tensor."""

        def check(values: Any) -> None:
            tensor = self.make_tensor(values)
            a = self._from(tensor)
            assert a.shape == values.shape
            assert a.dtype is wp.dtype_from_numpy(values.dtype)
            np.testing.assert_array_equal(a.numpy(), values)
            self._assert_shared(a, tensor)

        for_all(self._values(), check, self.examples)

    def test_views_become_arrays(self) -> None:
        """Strides are kept: nothing is copied."""

        def check(values: Any) -> None:
            index = (slice(1, None, 2),) + (slice(None),) * (values.ndim - 1)
            wanted = values[index]
            tensor = self.make_tensor(values)
            a = self._from(self.view(tensor, index))
            np.testing.assert_array_equal(a.numpy(), wanted)
            self._assert_shared(a, self.view(tensor, index))

        for_all(self._values(), check, self.examples)

    def test_trailing_dimensions_become_vectors_and_matrices(self) -> None:
        """`dtype` takes trailing dimensions, in rows that need not be adjacent; others are refused."""
        if self.max_dimensions < 2:
            return
        scalar = self._scalars()[-1]
        kind = wp.dtype_to_numpy(scalar)
        values: Any = np.arange(35).reshape(5, 7).astype(kind)
        tensor = self.make_tensor(values)
        vector = wp.types.vector(3, scalar)
        a = self._from(self.view(tensor, (slice(None), slice(2, 5))), dtype=vector)
        assert a.shape == (5,)
        assert a.dtype is vector
        np.testing.assert_array_equal(a.numpy(), values[:, 2:5])
        assert_raises(ArgumentError, lambda: self._from(tensor, dtype=wp.types.vector(4, scalar)))
        other = wp.float32 if scalar is not wp.float32 else wp.float64
        assert_raises(ArgumentError, lambda: self._from(tensor, dtype=other))
        matrix = wp.types.matrix((2, 2), scalar)
        square = self.make_tensor(values[:3, :4].copy())
        assert self._from(square, dtype=matrix).shape == (3,)

    def test_empty_tensors(self) -> None:
        """Zero size keeps shape and type, both ways."""
        for scalar in self._scalars():
            for shape in ((0,), (2, 0))[: self.max_dimensions]:
                a = self._from(self.make_tensor(np.zeros(shape, wp.dtype_to_numpy(scalar))))
                assert (a.shape, a.dtype) == (shape, scalar)
                assert self.values_of(self._to(wp.zeros(shape, dtype=scalar))).shape == shape

    def test_arrays_keep_tensors_alive(self) -> None:
        """Memory lives as long as the array, and no longer."""
        values: Any = np.arange(1000).astype(self._number())
        tensor = self.make_tensor(values)
        a = self._from(tensor)
        view = a[10:20]
        try:
            alive = weakref.ref(tensor)
        except TypeError:
            alive = None
        del tensor, a
        gc.collect()
        for _ in range(8):
            self.make_tensor(values + 1)
        np.testing.assert_array_equal(view.numpy(), values[10:20])
        del view
        gc.collect()
        assert alive is None or alive() is None

    def test_other_objects_are_type_errors(self) -> None:
        """What is no tensor, or no array, raises a TypeError that names what it is."""
        assert_raises(TypeError, lambda: self._from([1.0, 2.0]), "list")
        assert_raises(TypeError, lambda: self._to([1.0, 2.0]), "list")

    # ------------------------------------------------------------------ arrays to tensors

    def test_arrays_become_tensors(self) -> None:
        """A tensor has type, shape, values and memory of the array."""

        def check(values: Any) -> None:
            a = wp.array(values, dtype=wp.dtype_from_numpy(values.dtype), shape=values.shape)
            tensor = self._to(a)
            np.testing.assert_array_equal(self.values_of(tensor).view(values.dtype), values)
            a.zero_()
            assert not self.values_of(tensor).any()

        for_all(self._values(), check, self.examples)

    def test_tensors_keep_arrays_alive(self) -> None:
        """Memory lives as long as the tensor, and no longer."""
        values: Any = np.arange(1000).astype(self._number())
        a = wp.array(values)
        tensor = self._to(a)
        alive = weakref.ref(a)
        del a
        gc.collect()
        others = [wp.array(values + 1) for _ in range(8)]
        np.testing.assert_array_equal(self.values_of(tensor), values)
        del tensor, others
        gc.collect()
        assert alive() is None

    def test_vectors_become_trailing_dimensions(self) -> None:
        """Components are the last dimensions of a tensor, and come back as elements."""
        if self.max_dimensions < 2:
            return
        vector = wp.types.vector(3, self._scalars()[-1])
        values: Any = np.arange(12).reshape(4, 3).astype(wp.dtype_to_numpy(vector.scalar))
        tensor = self._to(wp.array(values, dtype=vector))
        np.testing.assert_array_equal(self.values_of(tensor), values)
        np.testing.assert_array_equal(self._from(tensor, dtype=vector).numpy(), values)

    # ------------------------------------------------------------------ launches

    def test_tensors_are_arguments_of_kernels(self) -> None:
        """Launches take tensors directly; what they write is seen in them, or read-only memory is refused."""

        def check(values: Any) -> None:
            x, y = self.make_tensor(values), self.make_tensor(np.zeros_like(values))
            if not self.is_writable:
                assert_raises(
                    ArgumentError, lambda: wp.launch(kernels.twice, dim=len(values), inputs=[x, y]), "read-only"
                )
                y = wp.zeros(len(values), dtype=wp.dtype_from_numpy(values.dtype))
            wp.launch(kernels.twice, dim=len(values), inputs=[x, y])
            found = self.values_of(y) if self.is_writable else y.numpy()
            np.testing.assert_array_equal(found, values + values)

        for_all(self._values(max_dims=1, kinds="iuf"), check, self.examples)

    def test_descriptors_are_arguments_of_kernels(self) -> None:
        """`return_ctype` gives what a launch takes as well."""
        values: Any = np.arange(5).astype(self._number())
        y = wp.zeros(5, dtype=wp.dtype_from_numpy(values.dtype))
        x = self._from(self.make_tensor(values), return_ctype=True)
        wp.launch(kernels.twice, dim=5, inputs=[x], outputs=[y])
        np.testing.assert_array_equal(y.numpy(), 2 * values)

    # ------------------------------------------------------------------ gradients

    def test_gradients_are_shared_both_ways(self) -> None:
        """The gradient of an array is that of its tensor, and stays so when the framework replaces it."""
        gradients = self.bridge.gradients
        scalar = self._float()
        if gradients is None or scalar is None:
            return
        values: Any = np.arange(1.0, 4.0).astype(wp.dtype_to_numpy(scalar))
        tensor = self.make_tensor(values)
        a = self._from(tensor, requires_grad=True)
        a.grad.fill_(3.0)
        np.testing.assert_array_equal(self.values_of(gradients.get(tensor)), np.full(3, 3.0))
        gradients.attach(tensor, gradients.new(tensor))
        np.testing.assert_array_equal(a.grad.numpy(), np.zeros(3))
        a.grad.fill_(4.0)
        np.testing.assert_array_equal(self.values_of(gradients.get(tensor)), np.full(3, 4.0))

        b: Any = wp.array(values, requires_grad=True)
        tensor = self._to(b)
        b.grad.fill_(5.0)
        np.testing.assert_array_equal(self.values_of(gradients.get(tensor)), np.full(3, 5.0))

    def test_a_given_gradient_is_used(self) -> None:
        """`grad` becomes the gradient of the array; `requires_grad=False` means none."""
        scalar = self._float()
        if self.bridge.gradients is None or scalar is None:
            return
        values: Any = np.arange(1.0, 4.0).astype(wp.dtype_to_numpy(scalar))
        a = self._from(self.make_tensor(values), grad=self.make_tensor(2 * values))
        np.testing.assert_array_equal(a.grad.numpy(), 2 * values)
        assert self._from(self.make_tensor(values), requires_grad=False).grad is None

    def test_gradients_are_those_of_finite_differences(self) -> None:
        """Gradients through the framework are float64 central differences, for drawn kernels, types and shapes."""
        if self.bridge.gradients is None:
            return
        st = require_hypothesis()
        cases = st.tuples(
            st.sampled_from(sorted(kernels.DIFFERENTIABLE, key=lambda kernel: str(kernel.key))),
            st.sampled_from(self._floats()),
            st.lists(st.floats(-2.0, 2.0, width=32), min_size=1, max_size=4),
        )

        def check(case: Any) -> None:
            kernel, scalar, numbers = case
            values: Any = np.array(numbers, wp.dtype_to_numpy(scalar))
            found = self.gradient(lambda x, y: wp.launch(kernel, dim=len(values), inputs=[x], outputs=[y]), values)
            wanted = central_differences(kernels.DIFFERENTIABLE[kernel], values.astype(np.float64))
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)

        for_all(cases, check, self.examples)

    # ------------------------------------------------------------------ helpers

    def _scalars(self) -> list[Any]:
        supported = set(self.bridge.dtypes_from.values())
        return [scalar for scalar in _SCALARS if scalar in supported]

    def _number(self) -> Any:
        """Return a NumPy type that holds the numbers below a thousand."""
        return wp.dtype_to_numpy(self._scalars()[-1])

    def _floats(self) -> list[Any]:
        return [scalar for scalar in (wp.float32, wp.float64) if scalar in self._scalars()]

    def _float(self) -> Any:
        return next(iter(self._floats()), None)

    def _values(self, max_dims: int | None = None, kinds: str = "biuf") -> Any:
        """Return a strategy for NumPy arrays of the types that the framework has."""
        st = require_hypothesis()
        types = [np.dtype(wp.dtype_to_numpy(scalar)) for scalar in self._scalars()]
        drawn = st.sampled_from([dtype for dtype in types if dtype.kind in kinds])
        extents = shapes(1, min(max_dims or self.max_dimensions, self.max_dimensions), 1, 5)
        seeds = st.integers(0, 2**16)
        return st.tuples(drawn, extents, seeds).map(lambda drawn: _numbers(*drawn))

    def _assert_shared(self, a: Any, tensor: Any) -> None:
        if not self.is_writable:
            assert a.is_readonly
            return
        a.fill_(1)
        np.testing.assert_array_equal(self.values_of(tensor), np.ones(a.shape))


def _numbers(dtype: np.dtype[Any], shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 50, shape).astype(dtype)


def _like(kind: str) -> str:
    """Return the kinds that a type of the same size may come back as; frameworks lack unsigned integers."""
    return "iu" if kind in "iu" else kind
