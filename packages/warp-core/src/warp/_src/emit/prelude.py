"""Chooses the prelude headers that a kernel needs and pastes them in order."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from warp._src.types.scalars import SCALARS

NATIVE_DIRECTORY: Final = Path(__file__).resolve().parents[2] / "native"
_FOUNDATIONS: Final = {"cpu": ("freestanding.h", "abi.h"), "cuda": ("device.h", "abi.h")}
_FOUNDATION: Final = frozenset(name for names in _FOUNDATIONS.values() for name in names)
# A header of functions for a kind of type is left out when no value of that kind occurs, whatever the names.
_KINDS: Final = {
    "bfloat16.h": "bfloat16",
    "half.h": "half",
    "linalg.h": "tensor",
    "rotation.h": "rotation",
    "snippet.h": "snippet",
    "snippet_types.h": "snippet",
}
_INCLUDE: Final = re.compile(r'^#include "(\w+\.h)"\n', re.MULTILINE)
_GUARD: Final = re.compile(r"^#(?:ifndef|define) WP_\w+_H\n", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")
_USED: Final = re.compile(r"wp::(\w+)")
# Names of core.h that other headers mention without defining them.
_TYPES: Final = frozenset({"vec", "mat", "quat", "transform", "half", "bfloat16", *(scalar.name for scalar in SCALARS)})


def own_text(text: str) -> str:
    """Give what a kernel adds to the headers, of the text of a whole unit."""
    # Headers lose their empty lines when they are pasted; the text of a kernel begins with one.
    return text[text.index("namespace wp {\n\n") :]


def prelude(text: str, kinds: frozenset[str], libm: str, target: str = "cpu") -> str:
    """Give the headers for kernel code `text`; `kinds` are those of "half", "tensor", "rotation", "snippet" in it."""
    used = set(_USED.findall(text)) - _TYPES
    chosen = ["core.h", *sorted(f"{kind}.h" for kind in kinds & {"bfloat16", "half", "snippet"}), "array.h"]
    for name in _headers():
        if _KINDS.get(name, "") in ("", *kinds) and not used.isdisjoint(_words(name)):
            chosen.append(name)
    ordered: dict[str, None] = {}
    for name in chosen:
        _append(name, ordered)
    return "\n".join([*map(_body, _FOUNDATIONS[target]), libm, *map(_body, ordered)])


def _append(name: str, ordered: dict[str, None]) -> None:
    """Append a header after those that it includes."""
    if name not in ordered:
        for included in _INCLUDE.findall(native_text(name)):
            if included not in _FOUNDATION:
                _append(included, ordered)
        ordered[name] = None


@lru_cache
def _headers() -> tuple[str, ...]:
    found = sorted(path.name for path in NATIVE_DIRECTORY.glob("*.h"))
    # What has no guard of ours is not meant for kernels.
    return tuple(name for name in found if name not in _FOUNDATION and _GUARD.search(native_text(name)))


@lru_cache
def native_text(name: str) -> str:
    """Read a header of `warp/native`."""
    return (NATIVE_DIRECTORY / name).read_text(encoding="utf-8")


@lru_cache
def _body(name: str) -> str:
    """Give a header without its guard, its includes and its comments."""
    lines = _INCLUDE.sub("", native_text(name)).splitlines()
    kept = [line for line in lines if line.strip() and not line.lstrip().startswith("//")]
    text = "\n".join(kept) + "\n"
    if _GUARD.match(text):
        text = _GUARD.sub("", text, count=2).rstrip().removesuffix("#endif")
    return text


@lru_cache
def _words(name: str) -> frozenset[str]:
    """Give every name that a header mentions; more than it defines, which only ever costs compile time."""
    return frozenset(_WORD.findall(_defining_text(name)))


def _defining_text(name: str) -> str:
    return "\n".join(
        line for line in _body(name).splitlines() if line.startswith(("WP_", "template", "struct", "#define"))
    )
