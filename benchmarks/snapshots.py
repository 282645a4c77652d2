"""Print how many bytes a tape copies because later launches overwrite what earlier ones have read.

usage: python benchmarks/snapshots.py [--steps N] [--size N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import warp as wp

wp.config.quiet = True
Floats = wp.array(dtype=float)
Run = Callable[[int, int], wp.Tape]


@wp.kernel
def linear(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = 0.5 * x[i]


@wp.kernel
def nonlinear(x: Floats, y: Floats):
    i = wp.tid()
    y[i] = x[i] - 0.1 * x[i] * x[i]


@wp.kernel
def row_of_trajectory(trajectory: wp.array2d(dtype=float), k: int):
    i = wp.tid()
    trajectory[k + 1, i] = trajectory[k, i] - 0.1 * trajectory[k, i] * trajectory[k, i]


def ping_pong(kernel: wp.Kernel) -> Run:
    """Return a simulation that goes back and forth between two arrays."""

    def run(steps: int, size: int) -> wp.Tape:
        x, y = (wp.full(size, 0.3, dtype=float, requires_grad=True) for _ in range(2))
        with wp.Tape() as tape:
            for _ in range(steps):
                wp.launch(kernel, dim=size, inputs=[x], outputs=[y])
                x, y = y, x
        return tape

    return run


def separate_arrays(steps: int, size: int) -> wp.Tape:
    """Give every step an array of its own."""
    x = wp.full(size, 0.3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(steps):
            y = wp.empty(size, dtype=float, requires_grad=True)
            wp.launch(nonlinear, dim=size, inputs=[x], outputs=[y])
            x = y
    return tape


def trajectory_in_slices(steps: int, size: int) -> wp.Tape:
    """Give every launch the two rows that it uses."""
    trajectory = wp.full((steps + 1, size), 0.3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for k in range(steps):
            wp.launch(nonlinear, dim=size, inputs=[trajectory[k]], outputs=[trajectory[k + 1]])
    return tape


def whole_trajectory(steps: int, size: int) -> wp.Tape:
    """Give every launch the whole trajectory."""
    trajectory = wp.full((steps + 1, size), 0.3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for k in range(steps):
            wp.launch(row_of_trajectory, dim=size, inputs=[trajectory, k])
    return tape


PROGRAMS: dict[str, Run] = {
    "two arrays in turn, linear kernel": ping_pong(linear),
    "two arrays in turn, nonlinear kernel": ping_pong(nonlinear),
    "an array for every step, nonlinear": separate_arrays,
    "trajectory, launches get rows": trajectory_in_slices,
    "trajectory, launches get all of it": whole_trajectory,
}


def main() -> None:
    """Run every program and print its copies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--size", type=int, default=1000, help="floats in the state")
    options = parser.parse_args()
    print(f"{options.steps} steps, state of {4 * options.size} bytes")
    print(f"{'program':40}{'bytes copied':>16}{'states':>10}{'seconds':>10}")
    for name, run in PROGRAMS.items():
        run(2, options.size)  # compiles
        start = time.perf_counter()
        tape = run(options.steps, options.size)
        seconds = time.perf_counter() - start
        print(f"{name:40}{tape.snapshot_bytes:16}{tape.snapshot_bytes / (4 * options.size):10.0f}{seconds:10.3f}")


if __name__ == "__main__":
    main()
