"""The frame of values that the interpreter's closures work on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from warp._src.ir.ops import Op, Path
from warp.errors import LaunchError

Frame = list[Any]
Step = Callable[[Frame], None]
State = tuple[Any, ...]
# Called with the interpreter and an operation.
Translator = Callable[[Any, Any], Step]


def put(frame: Frame, places: Sequence[int], values: Sequence[Any]) -> None:
    """Write values to their places."""
    for place, value in zip(places, values, strict=True):
        frame[place] = value


def move(frame: Frame, sources: Sequence[int], targets: Sequence[int]) -> None:
    """Copy values all at once, so that the places may overlap."""
    put(frame, targets, [frame[source] for source in sources])


def path_steps(path: Path, dynamic: Sequence[int], frame: Frame) -> tuple[int | str, ...]:
    """Fill the dynamic steps of a path in."""
    if not dynamic:
        return path  # type: ignore[return-value]  # without dynamic indices no step is None
    places = iter(dynamic)
    return tuple(int(frame[next(places)]) if step is None else step for step in path)


def checked(op: Op, function: Callable[..., Any], *args: Any) -> Any:
    """Call an access; an index out of range becomes a LaunchError that names the line."""
    try:
        return function(*args)
    except IndexError as error:
        raise LaunchError(f"{op.loc}: {error}") from error


__all__ = ["Frame", "State", "Step", "Translator", "checked", "move", "path_steps", "put"]
