#!/usr/bin/env bash
# Everything that only a GPU can show, in at most six minutes, with a table at the end. Needs Python, a CUDA driver and
# the folder that tests/gpu/prepare.sh fills; no registry.
# Usage: tests/gpu/run.sh              on a machine with a GPU
#        tests/gpu/run.sh --rehearse   the same steps on a stand-in for the driver, in the present environment
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python3}"

if [[ "${1:-}" == --rehearse ]]; then
    exec "$python" -m tests.gpu.run "$@"
fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# The frameworks of the machine stay visible.
"$python" -m venv --system-site-packages "$work/venv"
python="$work/venv/bin/python"
"$python" -m pip install --quiet --no-index --find-links tests/gpu/wheels \
    warp-core warp-autograd pytest hypothesis cuda-bindings
"$python" -m pip install --quiet --no-index --no-deps --find-links tests/gpu/wheels \
    warp-interop-torch warp-interop-jax || echo "the bridges are not installed"
if [[ -f tests/gpu/wheels/nvrtc.tar.xz ]]; then
    libraries="$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cuda_nvrtc/lib"
    mkdir -p "$libraries"
    tar --extract --xz --directory "$libraries" --file tests/gpu/wheels/nvrtc.tar.xz
fi
export WARP_CACHE_PATH="$work/cache"
"$python" -m tests.gpu.run "$@"
