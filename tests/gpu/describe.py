"""Names the device, the driver and the compiler; fails if one of them is missing."""

from __future__ import annotations

import sys

from tests.gpu.devices import use

import warp as wp
from warp._src.build import available_compilers, nvrtc_version
from warp._src.runtime.cuda import CudaDevice
from warp._src.runtime.driver import version_text


def main() -> None:
    """Print the description on one line."""
    device = use(sys.argv[1])
    assert isinstance(device, CudaDevice)
    version = version_text(device.driver.driver_version())
    compiler = "the host's compiler" if device.compiler else f"NVRTC {'.'.join(map(str, nvrtc_version()))}"
    memory = device.total_memory / 2**30
    what = f"{device.name}, sm_{device.arch}, {memory:.0f} GiB, driver for CUDA {version}, {compiler}"
    found = [compiler.name for compiler in available_compilers()]
    print(f"{what}, {len(wp.get_cuda_devices())} devices, for the CPU {', '.join(found) or 'no compiler'}")


if __name__ == "__main__":
    main()
