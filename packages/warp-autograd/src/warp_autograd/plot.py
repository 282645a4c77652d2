"""Pictures of Jacobians; needs matplotlib, which the extra `plot` brings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

import warp as wp
from warp.errors import ArgumentError
from warp_autograd.metadata import FunctionMetadata

_CELL = 0.25
_LARGEST_SIDE = 20.0


def jacobian_plot(
    jacobians: Mapping[tuple[int, int], Any],
    kernel: Any,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    show_plot: bool = True,
    show_colorbar: bool = True,
    scale_colors_per_submatrix: bool = False,
    title: str | None = None,
    colormap: str = "coolwarm",
    log_scale: bool = False,
) -> Any:
    """Show Jacobians as one grid of images, a column for each input and a row for each output.

    Solid lines part the elements of the arrays, dashed ones the components of an element. Entries that were not
    computed stay white.

    Args:
        jacobians: What `jacobian` or `jacobian_fd` returned.
        kernel: The kernel, or a `FunctionMetadata` of it or of the function.
        inputs: The kernel's arguments, which its first parameters name; needed with a kernel.
        outputs: Old argument, not needed any more: the kernel's remaining arguments.
        show_plot: Call `matplotlib.pyplot.show()`.
        show_colorbar: Draw the scale of colours, one for each image if they are scaled apart.
        scale_colors_per_submatrix: Give each image its own range of colours.
        title: Title of the figure.
        colormap: Name of a Matplotlib colour map.
        log_scale: Scale colours by the logarithm of the magnitude, signs kept.

    Returns:
        The Matplotlib figure.

    Raises:
        ImportError: Matplotlib is not installed; names the extra that brings it.
        ArgumentError: There is no Jacobian, or `kernel` is neither.
    """
    plt, colors = _require_matplotlib()
    if not jacobians:
        raise ArgumentError("jacobians is empty: there is nothing to plot")
    metadata = _metadata_of(kernel, inputs, outputs)
    matrices = {key: np.asarray(_numpy_of(matrix), dtype=np.float64) for key, matrix in jacobians.items()}
    columns = sorted({key[0] for key in matrices})
    rows = sorted({key[1] for key in matrices})
    widths = [next(m.shape[1] for key, m in matrices.items() if key[0] == column) for column in columns]
    heights = [next(m.shape[0] for key, m in matrices.items() if key[1] == row) for row in rows]
    figure, axes = plt.subplots(
        len(rows),
        len(columns),
        squeeze=False,
        figsize=_figure_size(widths, heights),
        gridspec_kw={"width_ratios": widths, "height_ratios": heights},
        layout="constrained",
    )
    _label_axes(axes, metadata, rows, columns)
    shared = _limits(list(matrices.values()))
    images = []
    for (row, output), (column, given) in product(enumerate(rows), enumerate(columns)):
        cell = axes[row][column]
        matrix = matrices.get((given, output))
        if matrix is None:
            cell.set_frame_on(False)
            continue
        norm = _norm(colors, _limits([matrix]) if scale_colors_per_submatrix else shared, log_scale)
        images.append(cell.imshow(matrix, cmap=colormap, norm=norm, aspect="auto", interpolation="nearest"))
        _draw_grid(cell, matrix.shape, _size(metadata.output_dtypes, output), _size(metadata.input_dtypes, given))
    if show_colorbar:
        for image in images if scale_colors_per_submatrix else images[:1]:
            figure.colorbar(image, ax=image.axes if scale_colors_per_submatrix else axes)
    if title:
        figure.suptitle(title)
    if show_plot:
        plt.show()
    return figure


def _require_matplotlib() -> tuple[Any, Any]:
    try:
        from matplotlib import colors, pyplot
    except ImportError as error:
        raise ImportError(
            "plots of Jacobians need matplotlib, which is not installed: pip install 'warp-autograd[plot]'"
        ) from error
    return pyplot, colors


def _metadata_of(kernel: Any, inputs: Sequence[Any] | None, outputs: Sequence[Any] | None) -> FunctionMetadata:
    if isinstance(kernel, FunctionMetadata):
        return kernel
    if not isinstance(kernel, wp.Kernel):
        raise ArgumentError(f"kernel must be a kernel or a FunctionMetadata, got {type(kernel).__qualname__}")
    if inputs is None:
        raise ArgumentError(f"inputs is required to tell the inputs of kernel '{kernel.key}' from its outputs")
    made = FunctionMetadata.from_kernel(kernel, inputs, outputs or ())
    if not outputs:
        parameters: Any = kernel.parameters[len(inputs) :]
        made.output_labels = [name for name, _ in parameters]
        made.output_dtypes = [getattr(kind, "dtype", None) for _, kind in parameters]
        made.output_strides = [None] * len(parameters)
    return made


def _numpy_of(matrix: Any) -> Any:
    return matrix.numpy() if hasattr(matrix, "numpy") else matrix


def _label(labels: Sequence[str], index: int) -> str:
    return labels[index] if index < len(labels) else str(index)


def _label_axes(axes: Any, metadata: FunctionMetadata, rows: Sequence[int], columns: Sequence[int]) -> None:
    for cell in axes.flat:
        cell.set_xticks([])
        cell.set_yticks([])
    for cell, given in zip(axes[0], columns, strict=True):
        cell.set_title(_label(metadata.input_labels, given))
    for cell, output in zip(axes[:, 0], rows, strict=True):
        cell.set_ylabel(_label(metadata.output_labels, output))


def _size(dtypes: Sequence[Any], index: int) -> int:
    """Return how many numbers one element of an array has."""
    dtype = dtypes[index] if index < len(dtypes) else None
    return int(np.prod(getattr(dtype, "shape", None) or (1,)))


def _figure_size(widths: Sequence[int], heights: Sequence[int]) -> tuple[float, float]:
    width = min(2.5 + _CELL * sum(widths) + 0.5 * len(widths), _LARGEST_SIDE)
    height = min(1.5 + _CELL * sum(heights) + 0.5 * len(heights), _LARGEST_SIDE)
    return width, height


def _limits(matrices: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    values = np.concatenate([matrix.ravel() for matrix in matrices])
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def _norm(colors: Any, limits: tuple[float, float], is_logarithmic: bool) -> Any:
    low, high = limits
    if not is_logarithmic:
        return colors.Normalize(low, high)
    return colors.SymLogNorm(linthresh=max(abs(low), abs(high)) * 1e-6, vmin=low, vmax=high)


def _draw_grid(cell: Any, shape: tuple[int, ...], row_size: int, column_size: int) -> None:
    for draw, count, size in ((cell.axhline, shape[0], row_size), (cell.axvline, shape[1], column_size)):
        for position in range(1, count):
            is_element = position % size == 0
            draw(
                position - 0.5,
                color="black",
                linewidth=1.2 if is_element else 0.4,
                linestyle="-" if is_element else "--",
            )
