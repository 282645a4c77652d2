"""Find ranges of addresses that overlap another."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Generic, TypeVar

Item = TypeVar("Item")


class AddressIndex(Generic[Item]):
    """Items at ranges of addresses, which may overlap each other.

    Ranges of about one size are kept in one sorted list, so that a search looks only near the place in question.
    """

    def __init__(self) -> None:
        self._classes: dict[int, tuple[list[int], list[int], list[Item]]] = {}

    def add(self, low: int, high: int, item: Item) -> None:
        """Add an item at the addresses [low, high)."""
        lows, highs, items = self._classes.setdefault((high - low).bit_length(), ([], [], []))
        place = bisect_right(lows, low)
        lows.insert(place, low)
        highs.insert(place, high)
        items.insert(place, item)

    def remove(self, low: int, high: int, item: Item) -> None:
        """Remove an item that was added at [low, high)."""
        lows, highs, items = self._classes[(high - low).bit_length()]
        place = bisect_left(lows, low)
        while items[place] is not item:
            place += 1
        del lows[place], highs[place], items[place]

    def overlapping(self, low: int, high: int) -> list[Item]:
        """Return the items whose range has an address of [low, high)."""
        found: list[Item] = []
        for size, (lows, highs, items) in self._classes.items():
            # A range of this class has fewer than 2**size bytes.
            for place in range(bisect_right(lows, low - (1 << size)), bisect_left(lows, high)):
                if highs[place] > low:
                    found.append(items[place])
        return found

    def items(self) -> list[Item]:
        """Return all items."""
        return [item for _, _, items in self._classes.values() for item in items]

    def clear(self) -> None:
        """Remove everything."""
        self._classes.clear()
