"""Names the device, the driver and the compilers; fails without the first two, or if NVRTC does not work."""

from __future__ import annotations

import sys

from tests.gpu.devices import use

import warp as wp
from warp._src.build import available_compilers, compile_cubin, nvrtc_version
from warp._src.emit.cuda import own_kernels_text
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.driver import version_text


def main() -> None:
    """Print the description on one line."""
    device = use(sys.argv[1])
    assert isinstance(device, CudaDevice)
    version = version_text(device.driver.driver_version())
    compile_cubin(own_kernels_text("transfers.cu"), f"sm_{device.arch}")
    compiler = f"NVRTC {'.'.join(map(str, nvrtc_version()))}"
    memory = device.total_memory / 2**30
    what = f"{device.name}, sm_{device.arch}, {memory:.0f} GiB, driver for CUDA {version}, {compiler}"
    found = [compiler.name for compiler in available_compilers()]
    print(f"{what}, {len(wp.get_cuda_devices())} devices, for the CPU {', '.join(found) or 'no compiler'}")


if __name__ == "__main__":
    main()
