"""Matrix types of any shape and scalar type, stored row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from warp._src.types.scalar_base import as_number
from warp._src.types.scalars import float32
from warp._src.types.tensor_arithmetic import ComponentArithmetic, dot
from warp._src.types.tensor_base import ANY_LENGTH, Tensor, is_number
from warp._src.types.vectors import Vector, new_tensor_class, short_suffix, tensor_length, tensor_scalar, vector

__all__ = ["Matrix", "matrix", "row_type"]

_Self = TypeVar("_Self", bound="Matrix")


class Matrix(ComponentArithmetic):
    """Rows of scalars."""

    __slots__ = ()
    category: ClassVar[str] = "matrix"
    splats: ClassVar[bool] = True

    @classmethod
    def check_arguments(cls, arguments: tuple[object, ...]) -> None:
        """Accept scalars, a flat sequence, or rows of the right length; ValueError otherwise."""
        rows: Any = arguments
        if len(arguments) == 1 and not is_number(arguments[0]):
            rows = arguments[0]
        if isinstance(rows, (np.ndarray, Matrix)):
            if rows.shape not in (cls.shape, (cls.length,)):
                raise ValueError(f"{cls.name} has shape {cls.shape}, got {rows.shape}")
            return
        if isinstance(rows, Iterable):
            lengths = [len(row) for row in rows if hasattr(row, "__len__") and not is_number(row)]
            if lengths and (len(lengths) != cls.shape[0] or any(count != cls.shape[1] for count in lengths)):
                raise ValueError(f"{cls.name} needs {cls.shape[0]} rows of {cls.shape[1]}, got rows of {lengths}")

    @classmethod
    def from_rows(cls: type[_Self], *rows: object) -> _Self:
        """Make a matrix from its rows, given one by one or as one sequence."""
        return cls(*_unpacked(rows))

    @classmethod
    def from_cols(cls: type[_Self], *columns: object) -> _Self:
        """Make a matrix from its columns, given one by one or as one sequence."""
        transposed = matrix((cls.shape[1], cls.shape[0]), cls.scalar)(*_unpacked(columns))
        return cls(np.asarray(transposed).T)

    def _indices(self, key: Any) -> Any:
        return np.arange(self.length).reshape(self.shape)[key]

    def __getitem__(self, key: Any) -> Any:
        indices = self._indices(key)
        if indices.ndim == 0:
            return self.values[int(indices)]
        if 0 in indices.shape:
            return []
        chosen = vector(indices.size, self.scalar) if indices.ndim == 1 else matrix(indices.shape, self.scalar)
        return chosen.from_numbers(self.values[index] for index in indices.ravel().tolist())

    def __setitem__(self, key: Any, value: object) -> None:
        indices = self._indices(key)
        if indices.ndim == 0:
            self.values[int(indices)] = self.scalar.convert(as_number(value, self.name))
            return
        if 0 in indices.shape:
            return
        chosen = vector(indices.size, self.scalar) if indices.ndim == 1 else matrix(indices.shape, self.scalar)
        for index, number in zip(indices.ravel().tolist(), chosen(value).values, strict=True):
            self.values[index] = number

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self.shape[0]))

    def __str__(self) -> str:
        return f"[{', '.join(str(row) for row in self)}]"

    def get_row(self, index: int) -> Any:
        """Return a copy of one row."""
        return self[index]

    def get_col(self, index: int) -> Any:
        """Return a copy of one column."""
        return self[:, index]

    def set_row(self, index: int, value: object) -> None:
        """Replace one row."""
        self[index] = value

    def set_col(self, index: int, value: object) -> None:
        """Replace one column."""
        self[:, index] = value

    def multiply(self, other: Tensor) -> Any:
        """Return the product with a column vector or a matrix."""
        rows, columns = self.shape
        if not isinstance(other, (Vector, Matrix)):
            return NotImplemented
        _check_inner(self, other, columns, other.shape[0])
        left = [self.values[row * columns : (row + 1) * columns] for row in range(rows)]
        if isinstance(other, Vector):
            return vector(rows, self.scalar).from_numbers(dot(self.scalar, row, other.values) for row in left)
        width = other.shape[1]
        right = [other.values[column::width] for column in range(width)]
        product = matrix((rows, width), self.scalar)
        return product.from_numbers(dot(self.scalar, row, column) for row in left for column in right)

    def __rmul__(self, other: object) -> Any:
        if not isinstance(other, Vector):
            return super().__rmul__(other)
        _check_inner(other, self, other.length, self.shape[0])
        width = self.shape[1]
        columns = [self.values[column::width] for column in range(width)]
        return vector(width, self.scalar).from_numbers(dot(self.scalar, other.values, column) for column in columns)

    def __matmul__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self.multiply(other)
        return np.asarray(self) @ other if isinstance(other, np.ndarray) else NotImplemented

    def __rmatmul__(self, other: object) -> Any:
        if isinstance(other, Vector):
            return self.__rmul__(other)
        return other @ np.asarray(self) if isinstance(other, np.ndarray) else NotImplemented


def matrix(shape: tuple[Any, Any], dtype: Any = float32) -> type[Matrix]:
    """Return the matrix type of (rows, columns) `shape` (Any for a generic annotation) of scalar type `dtype`.

    The same class is returned for the same arguments. Raises TypeError for a bad dtype, ValueError for a bad shape.
    """
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise ValueError(f"matrix shape must be (rows, columns), got {shape!r}")
    scalar = tensor_scalar(dtype, "matrix")
    rows, columns = tensor_length(shape[0], "matrix"), tensor_length(shape[1], "matrix")
    return _matrix_class(rows, columns, scalar)


@cache
def _matrix_class(rows: int, columns: int, scalar: Any) -> type[Matrix]:
    length = ANY_LENGTH if ANY_LENGTH in (rows, columns) else rows * columns
    attributes = {
        "scalar": scalar,
        "shape": (rows, columns),
        "length": length,
        "origin": (matrix, ((rows, columns), scalar)),
    }
    created: type[Matrix] = new_tensor_class(Matrix, _matrix_name(rows, columns, scalar), attributes)
    return created


def row_type(matrix_class: type[Matrix]) -> type[Vector]:
    """Return the vector type of one row."""
    return vector(matrix_class.shape[1], matrix_class.scalar)


def _matrix_name(rows: int, columns: int, scalar: Any) -> str:
    suffix = short_suffix(scalar)
    if suffix in ("h", "f", "d") and rows == columns:
        if 2 <= rows <= 4:
            return f"mat{rows}{columns}{suffix}"
        if rows == 6:
            return f"spatial_matrix{suffix}"
    shape = ",".join("Any" if count == ANY_LENGTH else str(count) for count in (rows, columns))
    return f"mat_t({shape},{getattr(scalar, 'name', None) or getattr(scalar, '__name__', 'Any')})"


def _unpacked(parts: tuple[object, ...]) -> Iterable[object]:
    if len(parts) == 1 and isinstance(parts[0], Iterable) and not isinstance(parts[0], Vector):
        return parts[0]
    return parts


def _check_inner(left: Tensor, right: Tensor, columns: int, rows: int) -> None:
    if left.scalar is not right.scalar or columns != rows:
        raise TypeError(f"{left.name} and {right.name} cannot be multiplied: scalar types or inner sizes differ")
