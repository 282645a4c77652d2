"""The check of array accesses on tapes: reports what is overwritten although an adjoint needs it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import warp as wp
from warp.errors import AutogradError, WarpWarning

Floats = wp.array(dtype=float)


@wp.kernel
def square(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def move(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel
def square_and_overwrite(a: Floats, b: Floats):
    i = wp.tid()
    b[i] = a[i] * a[i]
    a[i] = 1.0


@wp.kernel
def add(x: Floats, y: Floats):
    i = wp.tid()
    y[i] += x[i]
    wp.atomic_add(y, i, x[i])


@wp.struct
class Pair:
    x: Floats
    y: Floats


@wp.kernel
def square_pair(pair: Pair):
    i = wp.tid()
    pair.y[i] = pair.x[i] * pair.x[i]


def floats(*values: float) -> wp.array:
    return wp.array(values, dtype=float, requires_grad=True)


@pytest.fixture(autouse=True)
def verified() -> Iterator[None]:
    wp.config.verify_autograd_array_access = True
    yield
    wp.config.verify_autograd_array_access = False


def reports(program: Callable[[wp.array, wp.array, wp.array], object], **options: str) -> list[str]:
    """Run a program on a tape and return what is reported."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with wp.Tape(**options):
            program(floats(1, 2), floats(0, 0), floats(3, 4))
    assert all(issubclass(warning.category, WarpWarning) for warning in seen)
    return [str(warning.message) for warning in seen]


def test_array_overwritten_between_kernels() -> None:
    def program(a: wp.array, b: wp.array, c: wp.array) -> None:
        wp.launch(square, dim=2, inputs=[a], outputs=[b])
        wp.launch(move, dim=2, inputs=[c], outputs=[a])

    (message,) = reports(program)
    for part in ("parameter 'x'", "'square' (", "is overwritten by 'move' (", __file__, "keeps a copy"):
        assert part in message
    assert "refused" in reports(program, overwrite="error")[0]
    assert "may be wrong" in reports(program, overwrite="ignore")[0]


def test_array_overwritten_within_a_kernel() -> None:
    def program(a: wp.array, b: wp.array, _: wp.array) -> None:
        wp.launch(square_and_overwrite, dim=2, inputs=[a, b])

    (message,) = reports(program)
    assert "'square_and_overwrite' (" in message
    assert "overwrites values that it has read" in message


def test_array_in_a_struct() -> None:
    def program(a: wp.array, b: wp.array, c: wp.array) -> None:
        pair = Pair()
        pair.x, pair.y = a, b
        wp.launch(square_pair, dim=2, inputs=[pair])
        wp.launch(move, dim=2, inputs=[c], outputs=[pair.x])

    (message,) = reports(program)
    assert "is overwritten by 'move'" in message


@pytest.mark.parametrize(
    "write", [lambda a: a.zero_(), lambda a: a.fill_(1.0), lambda a: a.assign([1, 2]), lambda a: a[1:].zero_()]
)
def test_writes_from_the_host(write: Callable[[wp.array], object]) -> None:
    def program(a: wp.array, b: wp.array, _: wp.array) -> None:
        wp.launch(square, dim=2, inputs=[a], outputs=[b])
        write(a)

    assert len(reports(program)) == 1


def clean_chain(a: wp.array, b: wp.array, c: wp.array) -> None:
    wp.launch(square, dim=2, inputs=[a], outputs=[b])
    wp.launch(square, dim=2, inputs=[b], outputs=[c])


def accumulation(a: wp.array, b: wp.array, c: wp.array) -> None:
    wp.launch(add, dim=2, inputs=[a], outputs=[b])
    wp.launch(add, dim=2, inputs=[c], outputs=[b])


def overwritten_after_a_linear_reader(a: wp.array, b: wp.array, c: wp.array) -> None:
    wp.launch(move, dim=2, inputs=[a], outputs=[b])
    wp.launch(move, dim=2, inputs=[c], outputs=[a])


@pytest.mark.parametrize("program", [clean_chain, accumulation, overwritten_after_a_linear_reader])
def test_harmless_programs_are_quiet(program: Callable[[wp.array, wp.array, wp.array], object]) -> None:
    assert not reports(program)


def test_a_new_tape_starts_anew() -> None:
    def program(a: wp.array, b: wp.array, c: wp.array) -> None:
        wp.launch(square, dim=2, inputs=[a], outputs=[b])

    a, b, c = floats(1, 2), floats(0, 0), floats(3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            tape = wp.Tape()
            with tape:
                program(a, b, c)
            tape.backward(grads={b: floats(1, 1)})
            tape.reset()
            wp.launch(move, dim=2, inputs=[c], outputs=[a])


def test_marked_arrays_of_a_recorded_function() -> None:
    def program(a: wp.array, b: wp.array, c: wp.array) -> None:
        b.numpy()[...] = a.numpy() ** 2
        a.mark_read()
        b.mark_write()
        tape.record_func(lambda: None, [a, b])
        wp.launch(move, dim=2, inputs=[c], outputs=[a])

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with wp.Tape() as tape:
            program(floats(1, 2), floats(0, 0), floats(3, 4))
    (warning,) = seen
    assert "'<lambda>'" in str(warning.message)
    assert "is overwritten by 'move'" in str(warning.message)


def test_marked_write_after_a_read() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        a, b = floats(1, 2), floats(0, 0)
        with wp.Tape() as tape:
            wp.launch(square, dim=2, inputs=[a], outputs=[b])
            a.numpy()[...] = 5.0
            a.mark_write()
            tape.record_func(lambda: None, [a])
    (warning,) = seen
    assert "is overwritten by '<lambda>'" in str(warning.message)
    assert "refused" in str(warning.message)
    with pytest.raises(AutogradError, match="overwritten later on the tape"):
        tape.backward(grads={b: floats(1, 1)})


def test_strict_tapes_raise() -> None:
    a, b = floats(1, 2), floats(0, 0)
    with wp.Tape(strict=True):
        wp.launch(square, dim=2, inputs=[a], outputs=[b])
        with pytest.raises(AutogradError, match="is overwritten by 'zero_'"):
            a.zero_()
    np.testing.assert_array_equal(a.numpy(), [0, 0])
