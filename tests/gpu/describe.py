"""Names the device, the driver and the compiler; fails if one of them is missing."""

from __future__ import annotations

import sys

from tests.gpu.devices import use

import warp as wp
from warp._src.build import nvrtc_version
from warp._src.runtime.cuda import CudaDevice


def main() -> None:
    """Print the description on one line."""
    device = use(sys.argv[1])
    assert isinstance(device, CudaDevice)
    driver = device.driver.driver_version() / 1000
    compiler = "the host's compiler" if device.compiler else f"NVRTC {'.'.join(map(str, nvrtc_version()))}"
    memory = device.total_memory / 2**30
    what = f"{device.name}, sm_{device.arch}, {memory:.0f} GiB, driver for CUDA {driver:g}, {compiler}"
    print(f"{what}, {len(wp.get_cuda_devices())} devices")


if __name__ == "__main__":
    main()
