#!/usr/bin/env bash
# Fill tests/gpu/wheels with what tests/gpu/run.sh installs on a machine that reaches no registry.
# Usage: tests/gpu/prepare.sh [PYTHON VERSION OF THAT MACHINE, 3.11 by default]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
version="${1:-3.11}"
wheels=tests/gpu/wheels
python="${PYTHON:-python3}"
mkdir -p "$wheels"
rm -rf "${wheels:?}"/*

"$python" -m pip wheel --quiet --no-deps --wheel-dir "$wheels" packages/warp-core packages/warp-autograd \
    packages/warp-interop-torch packages/warp-interop-jax
"$python" -m pip download --quiet --dest "$wheels" --only-binary :all: --python-version "$version" \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64 \
    numpy pluggy pytest hypothesis 'cuda-bindings==12.9.*'

# The wheel of NVRTC holds two builds of the library; one of them, packed tighter, is a third of its size.
unpacked="$(mktemp -d)"
trap 'rm -rf "$unpacked"' EXIT
"$python" -m pip install --quiet --no-deps --target "$unpacked" 'nvidia-cuda-nvrtc-cu12==12.9.*'
tar --create --directory "$unpacked/nvidia/cuda_nvrtc/lib" --exclude '*.alt.*' . | xz -6 -T0 >"$wheels/nvrtc.tar.xz"

du -sm "$wheels"
