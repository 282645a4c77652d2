#!/usr/bin/env bash
# Fill tests/gpu/wheels with what tests/gpu/run.sh installs on a machine that reaches no registry: `common` and a folder
# for each version of Python, of which only that of the machine has to be carried along.
# Usage: tests/gpu/prepare.sh [VERSIONS OF PYTHON, 3.10 to 3.13 by default]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
versions=("${@:-3.10}")
[[ $# -gt 0 ]] || versions+=(3.11 3.12 3.13)
wheels=tests/gpu/wheels
python="${PYTHON:-python3}"
limit=64 # MiB that can be carried to a machine that is lent
platforms=(--platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux2014_x86_64)
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

mkdir -p "$wheels/common"
rm -rf "${wheels:?}"/[0-9]* "$wheels"/common/*.whl
# Hatchling builds the packages there, from the sources that are carried: wheels of them would soon be old.
"$python" -m pip download --quiet --dest "$wheels/common" --only-binary :all: pip hatchling

for version in "${versions[@]}"; do
    # pip asks the Python that runs it, not the one named, what only older versions need.
    older=()
    [[ "$version" != 3.10 ]] || older=(exceptiongroup tomli typing-extensions)
    "$python" -m pip download --quiet --dest "$wheels/$version" --only-binary :all: --python-version "$version" \
        "${platforms[@]}" 'numpy>=1.26' 'pluggy>=1.5' 'pytest>=8' pytest-xdist hypothesis tqdm \
        'cuda-bindings==12.9.*' "${older[@]}"
    mv "$wheels/$version"/*-none-any.whl "$wheels/common"
done

# The wheel of NVRTC holds two builds of the library; one of them, packed tighter, is a third of its size. Packing takes
# most of the time, so it is done once.
"$python" -m pip download --quiet --no-deps --only-binary :all: "${platforms[@]}" --dest "$work" \
    'nvidia-cuda-nvrtc-cu12==12.9.*'
wheel="$(basename "$work"/nvidia_cuda_nvrtc_cu12-*.whl)"
packed="$wheels/common/${wheel%%-py3*}.tar.xz"
if [[ ! -f "$packed" ]]; then
    rm -f "$wheels"/common/*.tar.xz
    "$python" -m zipfile --extract "$work/$wheel" "$work/nvrtc"
    tar --create --directory "$work/nvrtc/nvidia/cuda_nvrtc/lib" --exclude '*.alt.*' . | xz -2 -T0 >"$packed.part"
    mv "$packed.part" "$packed"
fi

for version in "${versions[@]}"; do
    size="$(du -cm --apparent-size "$wheels/common" "$wheels/$version" | tail -n 1 | cut -f 1)"
    echo "for Python $version carry $wheels/common and $wheels/$version: $size MiB"
    if ((size >= limit)); then
        echo "that is more than $limit MiB"
        exit 1
    fi
done
