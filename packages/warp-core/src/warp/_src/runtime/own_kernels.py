"""The kernels that the runtime itself needs on CUDA devices, from files of `warp/native`."""

from __future__ import annotations

from collections.abc import Callable

from warp._src.runtime.cuda import CudaDevice


class _Builder:
    """How a file of kernels is compiled; the layer that knows compilers says so."""

    build: Callable[[CudaDevice, str], bytes]


def set_builder(build: Callable[[CudaDevice, str], bytes]) -> None:
    """Register the function that compiles a file of `warp/native` for a device."""
    _Builder.build = staticmethod(build)


def load_kernels(device: CudaDevice, file: str, *names: str) -> list[int]:
    """Return the handles of kernels of a file, compiled for a device. Raises ToolchainError."""
    with device.active(), device.relaxed():
        library = device.driver.load_library(_Builder.build(device, file))
        return [device.driver.kernel(library, name) for name in names]
