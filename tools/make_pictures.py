"""Draw the pictures of the documentation: the Jacobians of its example, and the tape of the other (needs `dot`)."""

# mypy: ignore-errors
# ruff: noqa: D103 - kernels say what they do
from __future__ import annotations

import subprocess
from pathlib import Path

import matplotlib

import warp as wp
import warp.autograd

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


@wp.kernel
def my_kernel(
    a: wp.array(dtype=float),
    b: wp.array(dtype=wp.vec3),
    out1: wp.array(dtype=wp.vec2),
    out2: wp.array(dtype=wp.quat),
):
    tid = wp.tid()
    ai, bi = a[tid], b[tid]
    out1[tid] = wp.vec2(ai * wp.length(bi), -ai * wp.dot(bi, wp.vec3(0.1, 1.0, -0.1)))
    out2[tid] = wp.normalize(wp.quat(ai, bi[0], bi[1], bi[2]))


@wp.kernel
def add(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float)):
    tid = wp.tid()
    c[tid] = a[tid] + b[tid]


def draw_jacobians() -> None:
    """Write the pictures of all four Jacobians, and of two of them with rows left out."""
    a = wp.array([2.0, -1.0], dtype=float, requires_grad=True)
    b = wp.array([[3.0, 1.0, 2.0], [-4.0, -1.0, 0.0]], dtype=wp.vec3, requires_grad=True)
    outputs = [wp.zeros(2, dtype=wp.vec2, requires_grad=True), wp.zeros(2, dtype=wp.quat, requires_grad=True)]
    subset = {"input_output_mask": [("a", "out1"), ("b", "out2")], "max_outputs_per_var": 5}
    matplotlib.rcParams.update({"svg.hashsalt": "warp", "svg.fonttype": "none"})
    for name, options in (("jacobian", {}), ("jacobian_subset", subset)):
        found = wp.autograd.jacobian(my_kernel, 2, [a, b], outputs, **options)
        figure = wp.autograd.jacobian_plot(found, my_kernel, [a, b], show_plot=False, title="Jacobians of my_kernel")
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None, "Creator": None})


def draw_tape() -> None:
    """Write the graph of three launches in nested scopes."""
    tape = wp.Tape()
    a, c = wp.array([2.0], dtype=float), wp.array([4.0], dtype=float)
    b, e = (wp.array([value], dtype=float, requires_grad=True) for value in (3.0, 5.0))
    result = wp.zeros(1, dtype=float, requires_grad=True)
    with tape:
        wp.launch(add, dim=1, inputs=[b, e], outputs=[a])
        with wp.ScopedTimer("Adder", print=False):
            tape.record_scope_begin("Custom Scope")
            wp.launch(add, dim=1, inputs=[a, b], outputs=[c])
            tape.record_scope_end()
            wp.launch(add, dim=1, inputs=[c, a], outputs=[result])
    text = tape.visualize(array_labels={a: "a", b: "b", c: "c", e: "e", result: "result"})
    subprocess.run(["dot", "-Tsvg", "-o", str(IMAGES / "tape.svg")], input=text, text=True, check=True)


if __name__ == "__main__":
    matplotlib.use("agg")
    draw_jacobians()
    draw_tape()
