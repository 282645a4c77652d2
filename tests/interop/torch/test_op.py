"""`torch_op`: outputs, gradients, transforms and compilation, against PyTorch's own arithmetic."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import warp as wp
from warp.errors import ArgumentError


@wp.kernel
def rosenbrock(xy: wp.array(dtype=wp.vec2d), z: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x = xy[i][0]
    y = xy[i][1]
    one = wp.float64(1.0)
    z[i] = (one - x) * (one - x) + wp.float64(100.0) * (y - x * x) * (y - x * x)


@wp.kernel
def mix(
    a: wp.array2d(dtype=wp.float64),
    b: wp.array2d(dtype=wp.float64),
    scale: wp.float64,
    product: wp.array2d(dtype=wp.float64),
    rows: wp.array(dtype=wp.float64),
):
    i, j = wp.tid()
    product[i, j] = scale * a[i, j] * wp.sin(b[i, j])
    wp.atomic_add(rows, i, a[i, j] * b[i, j])


@wp.kernel
def pick(table: wp.array(dtype=wp.float64), index: wp.array(dtype=int), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = table[index[i]] * table[index[i]]


@wp.kernel
def square_in_place(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = y[i] * y[i] * x[i]


@wp.kernel
def overwrite_output(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]
    y[i] = wp.sin(y[i]) * x[i]


@wp.kernel
def write_input(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    x[i] = wp.float64(0.0)
    y[i] = x[i]


@wp.kernel
def turn(v: wp.array(dtype=wp.vec3d), axis: wp.vec3d, sign: bool, y: wp.array(dtype=wp.vec3d)):
    i = wp.tid()
    c = wp.cross(axis, v[i])
    if sign:
        c = -c
    y[i] = c


@wp.kernel
def double_any(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] + x[i]


@wp.kernel
def count_above(
    x: wp.array(dtype=wp.float64), limit: wp.float64, above: wp.array(dtype=int), total: wp.array(dtype=wp.float64)
):
    i = wp.tid()
    if x[i] > limit:
        above[i] = 1
        wp.atomic_add(total, 0, x[i] * x[i])


@wp.kernel
def step_kernel(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i]


def three_steps(x: wp.array(dtype=wp.float64), steps: int, y: wp.array(dtype=wp.float64)) -> None:
    state = x
    for _ in range(steps):
        following = wp.zeros_like(y)
        wp.launch(step_kernel, dim=len(state), inputs=[state], outputs=[following])
        state = following
    wp.copy(y, state)


rosenbrock_op = wp.torch_op(rosenbrock, name="warp_test::rosenbrock")
mix_op = wp.torch_op(mix, num_outputs=2, output_dims={"rows": lambda a, b, scale: a.shape[0]})
pick_op = wp.torch_op(pick, launch_dims=lambda table, index: index.shape[0])
in_place_op = wp.torch_op(square_in_place, in_out_argnames=["y"])
overwrite_op = wp.torch_op(overwrite_output)
turn_op = wp.torch_op(turn)
steps_op = wp.torch_op(three_steps)


def steps_reference(x: Any, steps: int) -> Any:
    for _ in range(steps):
        x = torch.sin(x) * x
    return x


def rosenbrock_reference(p: Any) -> Any:
    return (1 - p[..., 0]) ** 2 + 100 * (p[..., 1] - p[..., 0] ** 2) ** 2


def mix_reference(a: Any, b: Any, scale: float) -> Any:
    return scale * a * torch.sin(b), (a * b).sum(-1)


def turn_reference(v: Any, axis: Any, sign: bool) -> Any:
    turned = torch.linalg.cross(torch.tensor(list(axis), dtype=v.dtype).expand(v.shape), v)
    return -turned if sign else turned


def numbers(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


INDEX = torch.tensor([0, 2, 2, 1], dtype=torch.int32)
CASES = {
    "rosenbrock": (rosenbrock_op, rosenbrock_reference, (numbers(5, 2),)),
    "two outputs": (mix_op, mix_reference, (numbers(3, 4), numbers(3, 4) + 1, 0.5)),
    "indices": (pick_op, lambda table, index: table[index.long()] ** 2, (numbers(3), INDEX)),
    "changed input": (in_place_op, lambda x, y: y * y * x, (numbers(4), numbers(4) - 1)),
    "overwritten output": (overwrite_op, lambda x: torch.sin(x * x) * x, (numbers(4),)),
    "values": (turn_op, turn_reference, (numbers(4, 3), [1.0, -2.0, 0.5], True)),
    "function": (steps_op, steps_reference, (numbers(4), 3)),
}


def leaves(args: Any) -> Any:
    return [a.clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def scalar_of(results: Any) -> Any:
    return sum(
        (result * torch.arange(1.0, result.numel() + 1).reshape(result.shape)).sum() for result in as_tuple(results)
    )


def gradients_of(function: Any, args: Any) -> list[Any]:
    inputs = leaves(args)
    scalar_of(function(*inputs)).backward()
    return [x.grad for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name: str) -> None:
    op, reference, args = CASES[name]
    for result, expected in zip(as_tuple(op(*args)), as_tuple(reference(*args)), strict=True):
        torch.testing.assert_close(result, expected)
    torch.testing.assert_close(gradients_of(op, args), gradients_of(reference, args))


@pytest.mark.parametrize("name", CASES)
def test_gradcheck(name: str) -> None:
    op, _, args = CASES[name]
    assert torch.autograd.gradcheck(op, leaves(args), check_batched_grad=True)


@pytest.mark.parametrize("name", CASES)
def test_opcheck(name: str) -> None:
    op, _, args = CASES[name]
    args = tuple(leaves(args))
    outcome = torch.library.opcheck(op.op, args)
    assert set(outcome.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", CASES)
def test_compiled_as_one_graph(name: str) -> None:
    op, reference, args = CASES[name]

    def use(function: Any) -> Any:
        return lambda *inputs: tuple(torch.sin(result) * 2 for result in as_tuple(function(*inputs)))

    torch.compiler.reset()
    compiled = torch.compile(use(op), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*args), use(reference)(*args))
    torch.testing.assert_close(gradients_of(compiled, args), gradients_of(use(reference), args))


@pytest.mark.parametrize("name", CASES)
def test_transforms(name: str) -> None:
    op, reference, args = CASES[name]
    places = tuple(place for place, a in enumerate(args) if isinstance(a, torch.Tensor) and a.is_floating_point())
    found = torch.func.grad(lambda *xs: scalar_of(op(*xs)), argnums=places)(*args)
    torch.testing.assert_close(found, torch.func.grad(lambda *xs: scalar_of(reference(*xs)), argnums=places)(*args))

    batch = [torch.stack([a, a + 0.5, a * 2]) if place in places else a for place, a in enumerate(args)]
    in_dims = tuple(0 if place in places else None for place in range(len(args)))
    torch.testing.assert_close(
        torch.vmap(op, in_dims, randomness="error")(*batch), torch.vmap(reference, in_dims)(*batch)
    )
    per_sample = [
        torch.vmap(torch.func.grad(lambda *xs: scalar_of(function(*xs)), argnums=places), in_dims)(*batch)  # noqa: B023
        for function in (op, reference)
    ]
    torch.testing.assert_close(*per_sample)
    jacobians = [
        torch.func.jacrev(lambda *xs: as_tuple(function(*xs))[0], argnums=places)(*args)  # noqa: B023
        for function in (op, reference)
    ]
    torch.testing.assert_close(*jacobians)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch, by its own forward mode
@pytest.mark.parametrize("name", CASES)
def test_forward_mode(name: str) -> None:
    op, reference, args = CASES[name]
    places = tuple(place for place, a in enumerate(args) if isinstance(a, torch.Tensor) and a.is_floating_point())
    inputs = tuple(args[place] for place in places)
    directions = tuple(torch.sin(torch.arange(1.0, x.numel() + 1, dtype=x.dtype)).reshape(x.shape) for x in inputs)

    def of_floats(function: Any) -> Any:
        return lambda *xs: function(*(xs[places.index(i)] if i in places else a for i, a in enumerate(args)))

    found = torch.func.jvp(of_floats(op), inputs, directions)
    torch.testing.assert_close(found, torch.func.jvp(of_floats(reference), inputs, directions))
    rows = [torch.func.jacfwd(lambda *xs: as_tuple(f(*xs))[0])(*inputs) for f in map(of_floats, (op, reference))]  # noqa: B023
    torch.testing.assert_close(*rows)
    assert torch.autograd.gradcheck(op, leaves(args), check_forward_ad=True, check_backward_ad=False)


def test_only_some_inputs_are_batched_or_differentiated() -> None:
    a, b = numbers(5, 3, 4), numbers(3, 4)
    found = torch.vmap(mix_op, (0, None, None))(a, b, 2.0)
    torch.testing.assert_close(found, mix_reference(a, b, 2.0))
    moved = torch.vmap(mix_op, (2, None, None), out_dims=1)(a.permute(1, 2, 0), b, 2.0)
    torch.testing.assert_close(moved[0], found[0].movedim(0, 1))
    a, b = a[0].requires_grad_(), b
    scalar_of(mix_op(a, b, 2.0)).backward()
    assert b.grad is None


def test_an_empty_batch() -> None:
    assert torch.vmap(rosenbrock_op)(torch.zeros(0, 5, 2, dtype=torch.float64)).shape == (0, 5)
    assert rosenbrock_op(torch.zeros(0, 2, dtype=torch.float64)).shape == (0,)


BACKENDS = ["aot_eager", *(["inductor"] if shutil.which("g++") else [])]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch, by its own compiler
@pytest.mark.parametrize("backend", BACKENDS)
def test_backends(backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    compiled = torch.compile(lambda *args: mix_op(*args)[0].cos() * 2, fullgraph=True, backend=backend)
    args = CASES["two outputs"][2]
    expected = gradients_of(lambda *args: mix_reference(*args)[0].cos() * 2, args)
    torch.testing.assert_close(gradients_of(compiled, args), expected)


def test_symbolic_shapes() -> None:
    compiled = torch.compile(lambda x: rosenbrock_op(x) + 1, fullgraph=True, backend="aot_eager", dynamic=True)
    for count in (3, 7, 9):
        points = numbers(count, 2)
        torch.testing.assert_close(compiled(points), rosenbrock_reference(points) + 1)


def test_one_graph_twice_and_a_shared_input() -> None:
    x = numbers(4).requires_grad_()
    y = overwrite_op(overwrite_op(x) + x)
    want = torch.sin((torch.sin(x * x) * x + x) ** 2) * (torch.sin(x * x) * x + x)
    (expected,) = torch.autograd.grad(want.sum(), x)
    for _ in range(2):
        (found,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_nothing_is_counted_twice(set_to_none: bool) -> None:
    x = numbers(3, 2).requires_grad_()
    optimizer = torch.optim.SGD([x], lr=1e-3)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=set_to_none)
        rosenbrock_op(x).sum().backward()
        (expected,) = torch.autograd.grad(rosenbrock_reference(x).sum(), x)
        torch.testing.assert_close(x.grad, expected)
        optimizer.step()


LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "sliced": lambda x: torch.stack([x, x], dim=1)[:, 0],
    "expanded": lambda x: x[:1].expand(4, 2),
    "negated bit": lambda x: torch.complex(x, x).conj().imag,
    "subclass": lambda x: x.as_subclass(type("Plain", (torch.Tensor,), {})),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_works(name: str) -> None:
    def use(function: Any) -> Any:
        return lambda x: function(LAYOUTS[name](x)).as_subclass(torch.Tensor)

    points = numbers(4, 2)
    torch.testing.assert_close(use(rosenbrock_op)(points), use(rosenbrock_reference)(points))
    torch.testing.assert_close(
        gradients_of(use(rosenbrock_op), [points]), gradients_of(use(rosenbrock_reference), [points])
    )


def test_incoming_adjoints_stay_as_they_were() -> None:
    x, adjoint = numbers(4).requires_grad_(), torch.full((4,), 2.0, dtype=torch.float64)
    overwrite_op(x).backward(adjoint)
    mix_op(numbers(2, 2).requires_grad_(), numbers(2, 2), 1.0)[0].backward(torch.ones(2, 2, dtype=torch.float64))
    assert adjoint.tolist() == [2.0] * 4


def test_generic_kernels_take_what_comes() -> None:
    op = wp.torch_op(double_any, launch_dims=lambda x: x.shape[0])
    for tensor in (
        torch.ones(3),
        torch.ones(3, dtype=torch.float64),
        torch.ones(3, dtype=torch.int32),
        torch.ones(3, 2),
    ):
        result = op(tensor)
        assert result.dtype is tensor.dtype
        assert torch.equal(result, tensor + tensor)
    assert gradients_of(op, [torch.ones(3)])[0].tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(ArgumentError, match="1 dimensions, besides"):
        op(torch.ones(3, 1, 1, 1))


def test_vectors_are_given_as_vectors_too() -> None:
    v = numbers(4, 3)
    torch.testing.assert_close(turn_op(v, wp.vec3d(1.0, -2.0, 0.5), True), turn_op(v, (1.0, -2.0, 0.5), True))


WRONG_CALLS = {
    "output": (wp.torch_op(mix, num_outputs=2), lambda: (numbers(2, 2), numbers(2, 2), 1.0), "'rows'.*output_dims"),
    "written": (wp.torch_op(write_input), lambda: (numbers(2),), "'x'.*read-only"),
    "sparse": (overwrite_op, lambda: (numbers(3).to_sparse(),), None),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_wrong_arguments_are_named(name: str) -> None:
    op, args, message = WRONG_CALLS[name]
    kind = (ArgumentError, NotImplementedError) if name == "sparse" else ArgumentError
    with pytest.raises(kind, match=message):
        op(*args())


WRONG_OPS = {
    "too many outputs": (lambda: wp.torch_op(rosenbrock, num_outputs=3), "num_outputs"),
    "bad name": (lambda: wp.torch_op(rosenbrock, name="rosenbrock"), "namespace::name"),
    "used name": (lambda: wp.torch_op(rosenbrock, name="warp_test::rosenbrock"), "already"),
}


@pytest.mark.parametrize("name", WRONG_OPS)
def test_what_cannot_be_an_operator(name: str) -> None:
    make, message = WRONG_OPS[name]
    with pytest.raises(ArgumentError, match=message):
        make()


def test_names_of_operators_can_be_written_in_a_class() -> None:
    op = wp.torch_op(wp.Kernel(rosenbrock.definition, rosenbrock.module, {}, key="__k__"), launch_dims=1)
    assert "::_" not in op.name


def test_a_module_that_holds_an_operator_can_be_copied() -> None:
    module = torch.nn.Linear(2, 2)
    module.op = rosenbrock_op
    assert copy.deepcopy(module).op is rosenbrock_op


def test_tensors_of_the_meta_device_give_shapes() -> None:
    product, rows = mix_op(
        torch.zeros(3, 4, device="meta", dtype=torch.float64),
        torch.zeros(3, 4, device="meta", dtype=torch.float64),
        1.0,
    )
    assert product.shape == (3, 4)
    assert rows.shape == (3,)
    assert rows.is_meta


def test_operators_may_be_made_again() -> None:
    first, second = wp.torch_op(rosenbrock), wp.torch_op(rosenbrock)
    assert first.name != second.name
    assert repr(first).startswith("<torch operator warp_op::")
    assert np.isfinite(second(numbers(3, 2)).numpy()).all()
