"""The intermediate representation: values, regions and functions in structured SSA form.

Every operation has `loc`, `results`, `operands` and `regions` under these names, so that a pass which only
moves or removes code never needs to know what an operation means. The closed list of operations is in
`ops.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warp._src.ir.ops import Op

# A type is one of the classes or instances of `warp._src.types`: a Scalar or Tensor class, a StructType, an
# ArrayType or an IndexedArrayType.
Type = Any


@dataclass(frozen=True, slots=True)
class Location:
    """Point in the user's source that an operation comes from; lines and columns count from 1."""

    file: str
    line: int
    column: int = 1
    end_column: int = 1
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


UNKNOWN = Location("<unknown>", 0)


class Value:
    """Result of an operation or argument of a region; identity is what counts."""

    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str = "") -> None:
        self.type = type
        self.name = name

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))}"


@dataclass(slots=True, eq=False)
class Region:
    """A list of operations with arguments; the last operation is a `Yield`."""

    args: tuple[Value, ...] = ()
    ops: list[Op] = field(default_factory=list)

    @property
    def terminator(self) -> Op:
        return self.ops[-1]

    def walk(self) -> Iterator[Op]:
        """Yield every operation of this region and of the regions inside it, in program order."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()


@dataclass(slots=True, eq=False)
class Function:
    """A kernel or function: `body` has one argument per parameter and yields the results.

    A struct parameter that the body changes is returned as an extra result (`changed` lists the indices of
    such parameters, in the order of the extra results). `custom_gradient` takes the parameters, then one
    adjoint per result, and yields one adjoint per parameter listed in `gradient_params`; accesses to
    `wp.adjoint[array]` inside it are loads and atomics in the gradient space. `custom_replay` has this
    function's signature and runs in its place during the backward pass.
    """

    name: str
    params: tuple[Value, ...]
    result_types: tuple[Type, ...]
    body: Region
    loc: Location = UNKNOWN
    is_kernel: bool = False
    changed: tuple[int, ...] = ()
    custom_gradient: Function | None = None
    gradient_params: tuple[int, ...] = ()
    custom_replay: Function | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def walk(self) -> Iterator[Op]:
        return self.body.walk()
