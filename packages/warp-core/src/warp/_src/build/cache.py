"""The cache of compiled objects: content-addressed, checked before use, safe for any number of processes."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from warp import config
from warp._src.build.flags import BuildOptions, compiler_flags, host_march, host_platform
from warp._src.build.toolchain import Compiler
from warp.errors import WarpWarning

CACHE_SCHEMA: Final = 1
ABI_VERSION: Final = 1

_VARIABLE: Final = "WARP_CACHE_PATH"
_TEMPORARY_PREFIX: Final = ".partial-"
_ENTRY: Final = re.compile(r"[0-9a-f]{40}\.(so|dylib|cubin|ptx)")
# An entry is the object followed by this mark and a digest of the object; loaders ignore what follows the object.
_MARK: Final = b"warp-sum"
_DIGEST_SIZE: Final = 24


class KernelCache:
    """A directory of compiled objects.

    Where it cannot be written, new objects go to a private directory that lives as long as the process.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def get_or_build(self, key: str, build: Callable[[], bytes], suffix: str = "") -> Path:
        """Return the path of the object with this key, calling `build` if it is missing or damaged.

        `suffix` is that of the file name; "" means a shared object.
        """
        file_name = key + (suffix or host_platform().suffix)
        for directory in (self.directory, *_private_directories()):
            path = directory / file_name
            if _is_intact(path):
                return path
        data = build()
        try:
            return _store(self.directory / file_name, data)
        except OSError as error:
            warnings.warn(
                f"the kernel cache {self.directory} cannot be written ({error}); kernels are compiled anew in every "
                f"process. Set warp.config.kernel_cache_dir or {_VARIABLE} to a directory that can",
                WarpWarning,
                stacklevel=2,
            )
            return _store(_private_directory() / file_name, data)

    def entries(self) -> list[Path]:
        """List every object, and nothing else that lies in the directory."""
        try:
            names = sorted(os.listdir(self.directory))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [self.directory / name for name in names if _ENTRY.fullmatch(name)]

    def clear(self) -> None:
        """Remove every object, and nothing else, from the directory."""
        remains = self.directory.glob(f"{_TEMPORARY_PREFIX}*")
        for path in [*self.entries(), *remains]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def make_key(source: str, *, compiler: Compiler, options: BuildOptions, prelude: str = "") -> str:
    """Return the key of an object: a digest of everything that its bytes depend on.

    `prelude` is the text of whatever the source includes instead of containing it.
    """
    target = host_platform()
    parts = (
        f"schema {CACHE_SCHEMA} abi {ABI_VERSION}",
        str(target),
        options.march or host_march(),
        compiler.identity,
        *compiler.command,
        *compiler_flags(compiler.family, target, options),
        prelude,
        source,
    )
    return _digest_of_parts(parts)


def make_cuda_key(source: str, *, architecture: str, flags: Sequence[str], version: tuple[int, int]) -> str:
    """Return the key of what NVRTC of this version makes of CUDA C++ text."""
    parts = (f"schema {CACHE_SCHEMA} abi {ABI_VERSION} nvrtc {version}", architecture, *flags, source)
    return _digest_of_parts(parts)


def get_or_build(key: str, build: Callable[[], bytes], suffix: str = "") -> Path:
    """Return the path of the object with this key in the configured cache, calling `build` on a miss.

    With `config.cache_kernels` off, the object comes from this process or is built.
    """
    cache = KernelCache(cache_directory() if config.cache_kernels else _private_directory())
    return cache.get_or_build(key, build, suffix)


def read_object(path: Path) -> bytes:
    """Return the bytes of an object in the cache as they were built."""
    return path.read_bytes()[: -len(_MARK) - _DIGEST_SIZE]


def cache_entries() -> list[Path]:
    """Return the files of the configured cache."""
    return KernelCache(cache_directory()).entries()


def clear() -> None:
    """Remove every compiled kernel from the configured cache. Loaded kernels go on working."""
    KernelCache(cache_directory()).clear()


def cache_directory() -> Path:
    """Return the configured cache directory; it need not exist."""
    chosen = config.kernel_cache_dir or os.environ.get(_VARIABLE)
    return Path(chosen).expanduser().absolute() if chosen else _user_cache() / "warp-core"


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    base = os.environ.get("XDG_CACHE_HOME")
    if base and os.path.isabs(base):
        return Path(base)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # no home directory
        return _private_directory()


@cache
def _private_directory() -> Path:
    directory = tempfile.mkdtemp(prefix="warp-kernels-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(directory, ignore_errors=True)

    atexit.register(remove)
    return Path(directory)


def _private_directories() -> tuple[Path, ...]:
    return (_private_directory(),) if _private_directory.cache_info().currsize else ()


def _digest_of_parts(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:40]


def _sum_of(data: bytes | memoryview) -> bytes:
    return _MARK + hashlib.blake2b(data, digest_size=_DIGEST_SIZE).digest()


def _is_intact(path: Path) -> bool:
    # A truncated object would kill the process with SIGBUS when it is loaded.
    try:
        data = memoryview(path.read_bytes())
    except OSError:
        return False
    split = len(data) - len(_MARK) - _DIGEST_SIZE
    return split > 0 and data[split:] == _sum_of(data[:split])


def _store(path: Path, data: bytes) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o700)
            file.write(data)
            file.write(_sum_of(data))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return path
