"""How long it takes to hand tensors to Warp: `python -m warp.examples.benchmarks.benchmark_interop_torch`.

Prints milliseconds for a number of iterations, each of which takes two tensors to a launch, and microseconds for
single conversions and operators.
"""

from __future__ import annotations

import torch

import warp as wp
from warp.testing.benchmark import run_bridge_benchmark
from warp_interop_torch.op import torch_op


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:  # type: ignore[valid-type]  # of kernels
    """Set y to the square of x."""
    i = wp.tid()
    y[i] = x[i] * x[i]


def main() -> None:
    """Print two tables."""
    operator = torch_op(square)
    leaf = torch.ones(10, requires_grad=True)
    more = {
        "torch_op, forward": lambda: operator(leaf),
        "torch_op, forward and backward": lambda: operator(leaf).sum().backward(),
        "x * x of torch, forward and backward": lambda: (leaf * leaf).sum().backward(),
    }
    run_bridge_benchmark(
        "torch", lambda shape, place: torch.ones(shape, device=place), torch.Tensor.requires_grad_, more
    )


if __name__ == "__main__":
    main()
