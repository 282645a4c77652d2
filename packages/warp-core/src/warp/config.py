"""Settings of Warp: plain attributes that a program may change at any time; each is read when it is needed."""

from __future__ import annotations

from warp._version import __version__

version: str = __version__
"""Version of warp-core."""

kernel_cache_dir: str | None = None
"""Directory of compiled kernels. None: `WARP_CACHE_PATH` of the environment, else a per-user cache directory."""

cache_kernels: bool = True
"""Keep compiled kernels between processes. False compiles each kernel anew in every process."""

mode: str = "release"
"""`"release"`, or `"debug"`: bounds, divisions and assertions are checked and failures name the line."""

max_unroll: int = 16
"""Loops with a constant trip count up to this are unrolled."""

enable_backward: bool = True
"""Make adjoints of kernels available. A module option of the same name overrides it."""

fast_math: bool = False
"""Let the compiler reassociate floating-point arithmetic and assume that NaN and infinity do not occur."""

deterministic: bool = True
"""Give the same bits for the same launch, whatever the number of workers. False trades this for speed."""

verbose: bool = False
"""Report what is compiled, loaded and found in the cache."""

quiet: bool = False
"""Print no messages of Warp's own, the greeting of `wp.init()` included."""

log_level: str | int | None = None
"""Level of the `warp` logger, as the `logging` module names it. None leaves the logger alone."""

print_launches: bool = False
"""Print one line for every launch: kernel, dimensions, device."""

verify_fp: bool = False
"""Check after every launch that the arrays it wrote hold finite numbers only."""

verify_autograd_array_access: bool = False
"""Report arrays that a tape's later launches overwrite although an earlier launch needs their values."""

verify_cuda: bool = False
"""Synchronise and check for errors after every CUDA launch."""

cuda_fast_compile: bool = False
"""Compile kernels for CUDA several times faster into slower code, for development; from NVRTC 12.8 on."""

cuda_contract: bool = True
"""Let a product and a sum on a CUDA device round once (FMA); without it results are closer to those of the CPU."""

cpu_workers: int | None = None
"""Threads that share a CPU launch, the caller included. None: `WARP_CPU_WORKERS`, else the usable processors."""

cpu_compiler: str | None = None
"""C++ compiler: `"ziglang"`, `"clang++"`, `"g++"` or the path of one. None: `WARP_CXX`, else the first one found."""
