"""`python -m warp`: what each command prints, and its exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import warp as wp
from warp.__main__ import main

FILE = """
from typing import Any

import warp as wp


@wp.kernel
def scale(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * wp.sin(x[i])


@wp.kernel
def anything(x: wp.array(dtype=Any)):
    i = wp.tid()
    x[i] = x[i] + x[i]


@wp.kernel(enable_backward=False)
def count(x: wp.array(dtype=wp.int32)):
    wp.atomic_add(x, 0, wp.tid())
"""
WRONG = """

@wp.kernel
def wrong(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0 + missing(2.0)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a file of kernels; its import leaves no traces."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "kernels_of_a_user", sys)
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "cache"))
    path = tmp_path / "kernels_of_a_user.py"
    path.write_text(FILE)
    return path


def sections(output: str) -> list[str]:
    return [line.removeprefix("# ") for line in output.splitlines() if line.startswith("# ")]


def test_info_names_what_there_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    assert main(["info"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = [line.split()[0] for line in lines if line]
    assert words[:3] == ["warp", "python", "platform"]
    assert f"warp      {wp.config.version}" in lines
    assert sum("[in use]" in line for line in lines if line.startswith("compiler ")) == 1
    assert any(line.startswith("device    cpu") for line in lines)
    assert any(line.startswith("nvrtc     1") and "sm_90" in line for line in lines)
    assert f"cache     {tmp_path} (0 objects, 0 B)" in lines
    assert "autograd" in words[words.index("plugins") :]


def test_info_without_compilers_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warp._src.build.available_compilers", lambda: ())
    monkeypatch.setenv("WARP_CXX", "/nowhere/c++")
    assert main(["info"]) == 1
    assert "compiler  none; install one with `pip install 'warp-core[compiler]'`" in capsys.readouterr().out


def test_compile_shows_every_section_of_the_target(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(file)]) == 0
    output = capsys.readouterr().out
    assert sections(output) == [
        "scale(a, x, y): IR",
        "scale(a, x, y): adjoint",
        "scale(a, x, y): C++, forward",
        "scale(a, x, y): C++, backward",
        "scale(a, x, y): object, forward",
        "scale(a, x, y): object, backward",
        "anything(x): generic, so its types are those of a launch",
        "count(x): IR",
        "count(x): adjoint",
        "count(x): C++, forward",
        "count(x): object, forward",
    ]
    assert "kernel scale(" in output and "kernel scale_backward(" in output and "none: enable_backward is off" in output
    assert "wp::sin(" in output and "__global__" not in output and "struct wp_array {" not in output


def test_compile_for_a_gpu_makes_cubins(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(file), "--target", "sm_90", "--kernel", "scale", "--show", "cuda,object"]) == 0
    output = capsys.readouterr().out
    assert [section.partition(": ")[2] for section in sections(output)] == [
        "CUDA, forward", "CUDA, backward", "object, forward", "object, backward",
    ]  # fmt: skip
    assert 'extern "C" __global__ void wp_backward(' in output
    assert output.count("CUBIN for sm_90: ") == 2


def test_compile_shows_headers_on_request(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(file), "--kernel", "scale", "--show", "cuda", "--headers"]) == 0
    assert "struct wp_array {" in capsys.readouterr().out


def test_compile_goes_on_after_a_kernel_that_is_wrong(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(FILE.replace("\n\n@wp.kernel\ndef anything", WRONG + "\n\n@wp.kernel\ndef anything"))
    assert main(["compile", str(file), "--show", "ir"]) == 1
    captured = capsys.readouterr()
    assert "missing" in captured.err and "# wrong(x): " in captured.err
    assert "kernel count(" in captured.out


def test_compile_says_what_it_cannot_find(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(file), "--kernel", "scael"]) == 1
    assert "no kernel 'scael'; it has scale, anything, count" in capsys.readouterr().err
    file.write_text("import warp as wp\n")
    assert main(["compile", str(file)]) == 1
    assert "has no kernels" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="is not a Python file"):
        main(["compile", str(file.parent / "absent.py")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compile", "x.py", "--target", "gpu"], "'gpu' is neither cpu nor an architecture such as sm_90"),
        (["compile", "x.py", "--show", "ir,asm"], "'asm' is not one of ir, adjoint, cpp, cuda, object"),
        (["cache", "--clear", "--path"], "not allowed with"),
        ([], "required: command"),
    ],
)
def test_wrong_arguments_are_explained(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_cache_counts_and_clears(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = file.parent / "cache"
    assert main(["compile", str(file), "--kernel", "scale", "--show", "object"]) == 0
    (directory / "notes.txt").write_text("mine")
    capsys.readouterr()
    assert main(["cache"]) == 0
    assert capsys.readouterr().out.startswith(f"{directory} (2 objects, ")
    assert main(["cache", "--path"]) == 0
    assert capsys.readouterr().out == f"{directory}\n"
    assert main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out == f"{directory} (0 objects, 0 B)\n"
    assert [path.name for path in directory.iterdir()] == ["notes.txt"]


def test_it_is_a_program() -> None:
    run = subprocess.run([sys.executable, "-m", "warp", "--help"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "info,cache,compile,plugins" in run.stdout
