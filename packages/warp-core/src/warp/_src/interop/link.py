"""What keeps an array and a foreign tensor of the same memory in step."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final

from warp._src.array.array import array
from warp._src.recording.storage import next_foreign_stamp, note_writes
from warp.errors import ArgumentError
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


class _Watch:
    """What a link that is watched knows: its array, the block of memory, and the count of writes seen last."""

    __slots__ = ("array", "block", "count")

    def __init__(self, target: array, block: _Block, count: Hashable) -> None:
        self.array = weakref.ref(target)
        self.block = block
        self.count = count


class Link:
    """Shares the gradient of a tensor with an array, whoever replaces it, and reports writes, both ways.

    Frameworks drop gradients to clear them (`zero_grad(set_to_none=True)`); the tensor then gets a new one of zeros as
    soon as the array's is used.
    """

    __slots__ = ("__weakref__", "_bridge", "_convert", "_dtype", "_gradient", "_shares_gradient", "_tensor", "_watch")

    def __init__(
        self, bridge: Bridge, tensor: Any, convert: Callable[..., array], dtype: Any, shares_gradient: bool
    ) -> None:
        self._bridge = bridge
        self._tensor = weakref.ref(tensor)
        self._convert = convert
        self._dtype = dtype
        self._shares_gradient = shares_gradient
        self._gradient: tuple[array, object] | None = None
        self._watch: _Watch | None = None

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
        """Return the tensor's gradient as an array. ArgumentError if its elements share memory."""
        wrapped = self._convert(gradient, self._dtype, requires_grad=False)
        if wrapped.overlaps_itself():
            raise ArgumentError(
                f"the gradient of the tensor of {self._bridge.name} has elements that share memory (shape "
                f"{wrapped.shape}, strides {wrapped.strides}), so nothing can be added to it; assign a copy"
            )
        self._gradient = (wrapped, gradient)
        return wrapped

    def adopt(self, gradient: array, source: object) -> None:
        """Take the array of a gradient that the tensor was just given."""
        self._gradient = (gradient, source)

    def source_of(self, gradient: array) -> object:
        """Return the tensor's gradient if that is what was assigned as the array's; else share gradients no more."""
        wrapped, source = self._gradient or (None, None)
        self._shares_gradient = gradient is wrapped
        return source if self._shares_gradient else None

    def note_write(self) -> None:
        """Tell the framework that the tensor was written."""
        on_write = self._bridge.on_write
        tensor = self._tensor()
        if tensor is not None and on_write is not None:
            on_write(tensor)
            if _blocks:
                for link in self._links():
                    link._is_written()  # counts what was just reported

    def watch(self, target: array) -> None:
        """Note from now on what the framework writes to an array that is on a tape."""
        state = self._state() if self._watch is None else None
        if state is not None:
            block = _block_at((self._bridge.name, state[0]))
            self._watch = _Watch(target, block, state[1])
            block.links.add(self)

    def note_foreign_writes(self) -> None:
        """Note what the framework wrote to the arrays of the tensor's block of memory that are on tapes."""
        if not _blocks:
            return
        for link in self._links():
            watch = link._watch
            target = None if watch is None else watch.array()
            if link._is_written() and target is not None:
                note_writes((target,), next_foreign_stamp())

    def _links(self) -> tuple[Link, ...]:
        """Return the links of this tensor's block of memory that are watched."""
        watch = self._watch
        if watch is not None:
            return tuple(watch.block.links)
        state = self._state()
        reference = None if state is None else _blocks.get((self._bridge.name, state[0]))
        block = None if reference is None else reference()
        return () if block is None else tuple(block.links)

    def _is_written(self) -> bool:
        """Tell whether the count of writes has changed since it was looked at last."""
        state, watch = self._state(), self._watch
        if state is None or watch is None or state[1] == watch.count:
            return False
        watch.count = state[1]
        return True

    def _state(self) -> tuple[Hashable, Hashable] | None:
        version = self._bridge.version
        tensor = self._tensor() if version is not None else None
        return None if tensor is None or version is None else version(tensor)
