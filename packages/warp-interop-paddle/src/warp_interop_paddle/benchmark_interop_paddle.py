"""How long it takes to hand tensors to Warp: `python -m warp.examples.benchmarks.benchmark_interop_paddle`.

Prints milliseconds for a number of iterations, each of which takes two tensors to a launch, and microseconds for
single conversions and operators.
"""

from __future__ import annotations

from typing import Any

import paddle

import warp as wp
from warp.testing.benchmark import run_bridge_benchmark
from warp_interop_paddle.op import paddle_op


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)) -> None:  # type: ignore[valid-type]  # of kernels
    """Set y to the square of x."""
    i = wp.tid()
    y[i] = x[i] * x[i]


def require_gradient(tensor: Any) -> Any:
    """Return a tensor as a leaf that requires a gradient."""
    tensor.stop_gradient = False
    return tensor


def main() -> None:
    """Print two tables."""
    operator = paddle_op(square)
    leaf = require_gradient(paddle.ones([10]))
    more = {
        "paddle_op, forward": lambda: operator(leaf),
        "paddle_op, forward and backward": lambda: operator(leaf).sum().backward(),
        "x * x of paddle, forward and backward": lambda: (leaf * leaf).sum().backward(),
    }
    run_bridge_benchmark(
        "paddle", lambda shape, place: paddle.ones(list(shape)).to(device=place), require_gradient, more
    )


if __name__ == "__main__":
    main()
