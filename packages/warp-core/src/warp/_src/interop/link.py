"""What keeps an array and a foreign tensor of the same memory in step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final

from warp._src.array.array import array
from warp._src.recording.storage import next_foreign_stamp, note_writes
from warp.plugins import Bridge


class _Block:
    """One block of a framework's memory, with the links of the arrays there that are on tapes."""

    __slots__ = ("__weakref__", "links")

    def __init__(self) -> None:
        self.links: weakref.WeakSet[Link] = weakref.WeakSet()


class _BlockReference(weakref.ref[_Block]):
    __slots__ = ("key",)
    key: Hashable


# Every launch with a tensor asks whether there is one: a weak dictionary would be slow to tell.
_blocks: Final[dict[Hashable, _BlockReference]] = {}


def _block_at(key: Hashable) -> _Block:
    """Return the block with a key, a new one if there is none."""
    reference = _blocks.get(key)
    block = None if reference is None else reference()
    if block is None:
        block = _Block()
        reference = _BlockReference(block, _forget)
        reference.key = key
        _blocks[key] = reference
    return block


def _forget(reference: _BlockReference) -> None:
    if _blocks.get(reference.key) is reference:
        del _blocks[reference.key]


class Link:
    """Shares the gradient of a tensor with an array, whoever replaces it, and reports writes, both ways.

    Frameworks drop gradients to clear them (`zero_grad(set_to_none=True)`); the tensor then gets a new one of zeros as
    soon as the array's is used.
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_block",
        "_bridge",
        "_convert",
        "_dtype",
        "_shares_gradient",
        "_source",
        "_tensor",
        "_version",
        "_wrapped",
    )

    def __init__(
        self, bridge: Bridge, tensor: Any, convert: Callable[..., array], dtype: Any, shares_gradient: bool
    ) -> None:
        self._bridge = bridge
        self._tensor = weakref.ref(tensor)
        self._convert = convert
        self._dtype = dtype
        self._shares_gradient = shares_gradient
        self._wrapped: array | None = None
        self._source: object = None
        self._array: weakref.ref[array] | None = None
        self._block: _Block | None = None
        self._version: Hashable = None

    def covers(self, shares_gradient: bool) -> bool:
        """Tell whether the tensor is still there, and shares its gradient if that is asked for."""
        return self._tensor() is not None and (self._shares_gradient or not shares_gradient)

    def gradient(self) -> object:
        """Return the gradient that the tensor has now; None if the tensor is gone or shares no gradient."""
        gradients = self._bridge.gradients
        tensor = self._tensor() if self._shares_gradient else None
        if tensor is None or gradients is None:
            return None
        found: object = gradients.get(tensor)
        if found is None:
            gradients.attach(tensor, gradients.new(tensor))
            found = gradients.get(tensor)
        return found

    def wrap(self, gradient: Any) -> array:
        """Return the tensor's gradient as an array."""
        self._wrapped, self._source = self._convert(gradient, self._dtype, requires_grad=False), gradient
        return self._wrapped

    def adopt(self, gradient: array, source: object) -> None:
        """Take the array of a gradient that the tensor was just given."""
        self._wrapped, self._source = gradient, source

    def source_of(self, gradient: array) -> object:
        """Return the tensor's gradient if that is what was assigned as the array's; else share gradients no more."""
        self._shares_gradient = gradient is self._wrapped
        return self._source if self._shares_gradient else None

    def note_write(self) -> None:
        """Tell the framework that the tensor was written."""
        on_write = self._bridge.on_write
        tensor = self._tensor()
        if tensor is not None and on_write is not None:
            on_write(tensor)
            for link in self._links():
                link._is_written()  # counts what was just reported

    def watch(self, target: array) -> None:
        """Note from now on what the framework writes to an array that is on a tape."""
        state = self._state() if self._block is None else None
        if state is not None:
            self._version = state[1]
            self._array = weakref.ref(target)
            self._block = _block_at(self._key(state))
            self._block.links.add(self)

    def note_foreign_writes(self) -> None:
        """Note what the framework wrote to the arrays of the tensor's block of memory that are on tapes."""
        for link in self._links():
            target = link._array() if link._array is not None else None
            if link._is_written() and target is not None:
                note_writes((target,), next_foreign_stamp())

    def _links(self) -> tuple[Link, ...]:
        block = self._block
        if block is None:
            if not _blocks:
                return ()
            state = self._state()
            reference = None if state is None else _blocks.get(self._key(state))
            block = None if reference is None else reference()
        return () if block is None else tuple(block.links)

    def _is_written(self) -> bool:
        """Tell whether the count of writes has changed since it was looked at last."""
        state = self._state()
        if state is None or state[1] == self._version:
            return False
        self._version = state[1]
        return True

    def _state(self) -> tuple[Hashable, Hashable] | None:
        tensor = self._tensor() if self._bridge.version is not None else None
        return None if tensor is None or self._bridge.version is None else self._bridge.version(tensor)

    def _key(self, state: tuple[Hashable, Hashable]) -> Hashable:
        return self._bridge.name, state[0]
