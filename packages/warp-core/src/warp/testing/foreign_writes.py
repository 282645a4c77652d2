"""The tests of bridges to frameworks that count writes: tapes notice what the framework writes, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

import warp as wp
from warp.errors import AutogradError
from warp.testing import bridge_kernels as kernels
from warp.testing.bridge_tests import BridgeTests

_OLD = (2.0, 3.0, 5.0)


class WriteConformance(BridgeTests):
    """Tests of what tapes do when the framework writes, part of those that every bridge passes."""

    writers: ClassVar[Mapping[str, Callable[[Any], object]]] = {}
    """Operations of the framework that change a tensor in place, by name, if `bridge.version` is set."""

    def test_tapes_notice_what_the_framework_writes(self) -> None:
        """Values computed from a tensor that the framework changes afterwards are refused by a backward pass."""
        for name, write in self._writers():
            for comes_from in ("tensor", "array", "argument"):
                tensor = self._tensor()
                x = self._from(tensor, requires_grad=True)
                if comes_from == "array":
                    x = self._array(_OLD)
                    tensor = self._to(x, requires_grad=False)
                y, z = self._array(), self._array()
                with wp.Tape() as tape:
                    _square(tensor if comes_from == "argument" else x, y)
                    _square(y, z)
                write(tensor)
                text = f"{name}, {comes_from}: " + _refusal(tape, z)
                assert "stale" in text or "overwritten off the tape" in text, text

    def test_tensors_made_after_the_launch_are_noticed(self) -> None:
        """A tensor of an array that is on a tape already tells of its writes too."""
        for name, write in self._writers():
            x, y, z = self._array(_OLD), self._array(), self._array()
            with wp.Tape() as tape:
                _square(x, y)
                _square(y, z)
            tensor = self._to(y, requires_grad=False)
            write(tensor)
            assert "overwritten off the tape" in _refusal(tape, z), name

    def test_changed_leaves_are_used_as_they_are(self) -> None:
        """That an optimiser changes what no operation has written is no fault, and gives no message."""
        for _, write in self._writers():
            tensor, y = self._tensor(), self._array()
            x = self._from(tensor, requires_grad=True)
            with wp.Tape() as tape:
                _square(x, y)
            write(tensor)
            _silently(tape, y)
            np.testing.assert_array_equal(x.grad.numpy(), 2 * self.values_of(tensor))

    def test_launches_that_run_again_are_up_to_date(self) -> None:
        """A tape recorded once serves every step of a loop that changes the leaf and runs the launches again."""
        for _, write in self._writers():
            for wraps_anew in (False, True):
                tensor, y, z = self._tensor(), self._array(), self._array()
                x = self._from(tensor, requires_grad=True)
                with wp.Tape() as tape:
                    _square(x, y)
                    _square(y, z)
                for _ in range(3):
                    _silently(tape, z)
                    np.testing.assert_allclose(x.grad.numpy(), 4 * self.values_of(tensor) ** 3, rtol=1e-5)
                    write(tensor)
                    _square(self._from(tensor) if wraps_anew else x, y)
                    _square(y, z)

    def test_writes_of_kernels_are_not_those_of_the_framework(self) -> None:
        """Neighbours in one block of memory, of which kernels write one, are told apart."""
        for _ in self._writers():
            whole = self.make_tensor(np.zeros(6, np.float32))
            x, y = (self._from(self.view(whole, part), requires_grad=False) for part in (slice(3), slice(3, 6)))
            x.assign(list(_OLD))
            z = self._from(self.make_tensor(np.zeros(3, np.float32)), requires_grad=True)
            with warnings.catch_warnings(), wp.Tape() as tape:
                warnings.simplefilter("error")
                _square(x, y)
                _square(self.view(whole, slice(3, 6)), z)
            _silently(tape, z)
            np.testing.assert_array_equal(z.numpy(), np.array(_OLD) ** 4)

    def test_a_write_before_a_copy_is_before_the_copy(self) -> None:
        """What is recorded after the framework has written is in order, though an older tape knows the tensor."""
        for _, write in self._writers():
            tensor, y, copy = self._tensor(), self._array(), self._array()
            x = self._from(tensor, requires_grad=True)
            with wp.Tape():
                _square(x, y)
            write(tensor)
            with wp.Tape() as tape:
                wp.copy(copy, x)
                _square(copy, y)
            _silently(tape, y)
            np.testing.assert_array_equal(x.grad.numpy(), 2 * self.values_of(tensor))

    # ------------------------------------------------------------------ helpers

    def _writers(self) -> list[tuple[str, Callable[[Any], object]]]:
        """Return what writes, by name; nothing if the framework does not count writes or has no floating point."""
        if self.bridge.version is None or wp.float32 not in self.bridge.dtypes_from.values():
            return []
        assert self.writers, "say in `writers` how the framework writes"
        return list(self.writers.items())

    def _tensor(self) -> Any:
        return self.make_tensor(np.array(_OLD, np.float32))

    def _array(self, values: Any = (0.0, 0.0, 0.0)) -> Any:
        return wp.array(list(values), dtype=wp.float32, requires_grad=True)


def _square(x: Any, y: Any) -> None:
    wp.launch(kernels.square, dim=3, inputs=[x], outputs=[y])


def _seeds(result: Any) -> Any:
    return {result: wp.ones(3, dtype=wp.float32)}


def _silently(tape: Any, result: Any) -> None:
    """Run a backward pass in which a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tape.zero()  # an optimiser needs a gradient, and leaves it
        tape.backward(grads=_seeds(result))


def _refusal(tape: Any, result: Any) -> str:
    """Return why a backward pass is refused."""
    try:
        tape.backward(grads=_seeds(result))
    except AutogradError as error:
        return str(error)
    return "not refused"
