#!/usr/bin/env bash
# Everything that only a GPU can show, in at most six minutes, with a table at the end. Needs Python, a CUDA driver and
# the folders that tests/gpu/prepare.sh fills; no registry.
# Usage: tests/gpu/run.sh              on a machine with a GPU
#        tests/gpu/run.sh --rehearse   the same steps on a stand-in for the driver, in the present environment
#        tests/gpu/run.sh --unpacked   the same, in the environment that is made of the folders
# Further options are those of tests/gpu/run.py.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python3}"

if [[ "${1:-}" == --rehearse ]]; then
    exec "$python" -m tests.gpu.run "$@"
fi

wheels=tests/gpu/wheels
version="$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')"
if [[ ! -d "$wheels/common" || ! -d "$wheels/$version" ]]; then
    echo "$wheels/common and $wheels/$version are needed: tests/gpu/prepare.sh $version" >&2
    exit 1
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# The frameworks of the machine stay visible. Python may lack the part of the standard library that brings pip.
"$python" -m venv --system-site-packages --without-pip "$work/venv"
python="$work/venv/bin/python"
pip=("$python" "$(echo "$wheels"/common/pip-*.whl)/pip")
find=(--find-links "$wheels/common" --find-links "$wheels/$version")
"${pip[@]}" install --quiet --no-index "${find[@]}" hatchling 'numpy>=1.26' 'cuda-bindings>=12.6' \
    'pytest>=8' pytest-xdist hypothesis tqdm
"${pip[@]}" install --quiet --no-index --no-deps --no-build-isolation ./packages/*/
libraries="$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cuda_nvrtc/lib"
"$python" -W ignore -m tarfile --extract "$(echo "$wheels"/common/nvidia_cuda_nvrtc_cu12-*.tar.xz)" "$libraries"
export WARP_CACHE_PATH="$work/cache"
if [[ "${1:-}" == --unpacked ]]; then
    set -- --rehearse "${@:2}"
fi
"$python" -m tests.gpu.run --spent "$SECONDS" "$@"
