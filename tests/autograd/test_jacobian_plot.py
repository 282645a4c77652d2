"""Pictures of Jacobians, by the structure of the figures."""

from __future__ import annotations

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

import warp as wp
import warp.autograd
from warp.errors import ArgumentError

mpl.use("agg")
from matplotlib import pyplot as plt
from matplotlib.colors import SymLogNorm


@wp.kernel
def mix(
    a: wp.array(dtype=float), b: wp.array(dtype=wp.vec3), out1: wp.array(dtype=wp.vec2), out2: wp.array(dtype=float)
):
    t = wp.tid()
    out1[t] = wp.vec2(a[t] * b[t][0], b[t][1] - b[t][2])
    out2[t] = a[t] * a[t]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def arguments():
    a = wp.array([2.0, -1.0], dtype=float, requires_grad=True)
    b = wp.array([[3.0, 1.0, 2.0], [-4.0, -1.0, 0.0]], dtype=wp.vec3, requires_grad=True)
    return [a, b], [wp.zeros(2, dtype=wp.vec2, requires_grad=True), wp.zeros(2, dtype=float, requires_grad=True)]


def images_of(figure) -> list[list]:
    """Return the images in rows and columns, without the scales of colours."""
    axes = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
    columns = axes[0].get_subplotspec().get_gridspec().ncols
    return [axes[start : start + columns] for start in range(0, len(axes), columns)]


def test_images_labels_and_grids() -> None:
    inputs, outputs = arguments()
    found = wp.autograd.jacobian(mix, 2, inputs, outputs)
    figure = wp.autograd.jacobian_plot(found, mix, inputs, outputs=outputs, show_plot=False, title="My title")
    grid = images_of(figure)
    assert [axes.get_title() for axes in grid[0]] == ["a", "b"]
    assert [row[0].get_ylabel() for row in grid] == ["out1", "out2"]
    assert figure.get_suptitle() == "My title"
    for row, output in enumerate((0, 1)):
        for column, given in enumerate((0, 1)):
            (image,) = grid[row][column].images
            np.testing.assert_array_equal(image.get_array(), found[given, output].numpy())
    # out1 has two elements of two components, b two of three: one solid line each, the others dashed.
    lines = grid[0][1].lines
    horizontal = [line.get_linestyle() for line in lines if len(set(line.get_ydata())) == 1]
    vertical = [line.get_linestyle() for line in lines if len(set(line.get_xdata())) == 1]
    assert horizontal == ["--", "-", "--"]
    assert vertical == ["--", "--", "-", "--", "--"]
    limits = {image.get_clim() for row in grid for axes in row for image in axes.images}
    assert limits == {(-4.0, 4.0)}


def test_options() -> None:
    inputs, outputs = arguments()
    found = wp.autograd.jacobian(mix, 2, inputs, outputs)

    def plot(**options):
        return wp.autograd.jacobian_plot(found, mix, inputs, show_plot=False, **options)

    assert len(plot().axes) == 5
    assert len(plot(show_colorbar=False).axes) == 4
    apart = plot(scale_colors_per_submatrix=True)
    assert len(apart.axes) == 8
    assert images_of(plot(colormap="viridis"))[0][0].images[0].get_cmap().name == "viridis"
    assert isinstance(images_of(plot(log_scale=True))[0][0].images[0].norm, SymLogNorm)


def test_rows_that_were_not_computed_and_pairs_that_were_masked() -> None:
    inputs, outputs = arguments()
    mask = [("a", "out1"), ("b", "out2")]
    found = wp.autograd.jacobian(mix, 2, inputs, outputs, input_output_mask=mask, max_outputs_per_var=1)
    figure = wp.autograd.jacobian_plot(found, mix, inputs, show_plot=False)
    grid = images_of(figure)
    assert [[len(axes.images) for axes in row] for row in grid] == [[1, 0], [0, 1]]


def test_plots_of_other_functions(monkeypatch) -> None:
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf().get_suptitle()))
    inputs, outputs = arguments()
    wp.autograd.jacobian(mix, 2, inputs, outputs, plot_jacobians=True)
    wp.autograd.jacobian_fd(mix, 2, inputs, outputs, plot_jacobians=True)
    wp.autograd.gradcheck(
        mix, 2, inputs, outputs, plot_absolute_error=True, plot_relative_error=True, show_summary=False
    )
    assert shown == [
        "Jacobians of mix",
        "Finite differences of mix",
        "Absolute errors of kernel mix",
        "Relative errors of kernel mix",
    ]


def test_metadata_in_place_of_the_kernel() -> None:
    inputs, outputs = arguments()
    described = wp.autograd.FunctionMetadata()
    found = wp.autograd.jacobian(mix, 2, inputs, outputs, metadata=described)
    described.input_labels[0] = "renamed"
    figure = wp.autograd.jacobian_plot(found, described, show_plot=False)
    assert figure.axes[0].get_title() == "renamed"


def test_wrong_arguments() -> None:
    inputs, outputs = arguments()
    found = wp.autograd.jacobian(mix, 2, inputs, outputs)
    for jacobians, kernel, given, message in (
        ({}, mix, inputs, "nothing to plot"),
        (found, None, inputs, "FunctionMetadata"),
        (found, mix, None, "inputs is required"),
    ):
        with pytest.raises(ArgumentError, match=message):
            wp.autograd.jacobian_plot(jacobians, kernel, given)


def test_without_matplotlib_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None; import warp, warp.autograd\n"
        "try:\n    warp.autograd.jacobian_plot({(0, 0): None}, None)\nexcept ImportError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'warp-autograd[plot]'" in run.stdout
