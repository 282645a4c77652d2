"""`array1d` to `array4d` and their indexed kin: annotations and constructors of a fixed rank."""

from __future__ import annotations

from typing import Any, ClassVar

from warp._src.array.array import array
from warp._src.array.indexed import indexedarray
from warp._src.types.arrays import ArrayType, IndexedArrayType


class _RankedArray(array):
    __slots__ = ()
    rank: ClassVar[int]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Make an array of this rank, or an annotation if there is nothing to make it from."""
        return array(*arguments, **{**keywords, "ndim": cls.rank})

    def __class_getitem__(cls, dtype: Any) -> ArrayType:
        return ArrayType(dtype, cls.rank)


class array1d(_RankedArray):  # noqa: N801
    """An array of one dimension."""

    __slots__ = ()
    rank = 1


class array2d(_RankedArray):  # noqa: N801
    """An array of two dimensions."""

    __slots__ = ()
    rank = 2


class array3d(_RankedArray):  # noqa: N801
    """An array of three dimensions."""

    __slots__ = ()
    rank = 3


class array4d(_RankedArray):  # noqa: N801
    """An array of four dimensions."""

    __slots__ = ()
    rank = 4


class _RankedIndexedArray(indexedarray):
    __slots__ = ()
    rank: ClassVar[int]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        """Make an indexed array of this rank, or an annotation if there is no data."""
        return indexedarray(*arguments, **{**keywords, "ndim": cls.rank})

    def __class_getitem__(cls, dtype: Any) -> IndexedArrayType:
        return IndexedArrayType(dtype, cls.rank)


class indexedarray1d(_RankedIndexedArray):  # noqa: N801
    """An indexed array of one dimension."""

    __slots__ = ()
    rank = 1


class indexedarray2d(_RankedIndexedArray):  # noqa: N801
    """An indexed array of two dimensions."""

    __slots__ = ()
    rank = 2


class indexedarray3d(_RankedIndexedArray):  # noqa: N801
    """An indexed array of three dimensions."""

    __slots__ = ()
    rank = 3


class indexedarray4d(_RankedIndexedArray):  # noqa: N801
    """An indexed array of four dimensions."""

    __slots__ = ()
    rank = 4
