"""`python -m warp compile FILE.py`: what becomes of the kernels of a file. Runs no kernel and needs no GPU."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from warp._src import build
from warp._src.emit import cpp, cuda
from warp._src.emit.options import EmitOptions
from warp._src.emit.prelude import own_text
from warp._src.ir.core import Function
from warp._src.ir.printer import print_function
from warp._src.lang.modules import MODULES
from warp._src.lang.objects import Kernel
from warp._src.lang.source import build_kernel
from warp._src.passes import pipeline
from warp._src.passes.adjoint import Adjoint
from warp.errors import WarpError

HELP = "show IR, adjoint, C++ or CUDA text and size of the object of the kernels of a file"
SECTIONS = ("ir", "adjoint", "cpp", "cuda", "object")
_ARCHITECTURE = re.compile(r"sm_\d+[af]?")
_EntryName = Literal["wp_forward", "wp_backward"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to its parser."""
    parser.add_argument("file", type=Path, help="a Python file; it is imported, so it should not launch kernels")
    parser.add_argument("--target", type=_target, default="cpu", help="cpu (the default) or an architecture: sm_90")
    parser.add_argument("--kernel", help="this kernel alone")
    parser.add_argument("--show", type=_sections, help=f"some of {','.join(SECTIONS)}; all of the target by default")
    parser.add_argument("--headers", action="store_true", help="show texts with the headers in front of them")


def _target(text: str) -> str:
    if text != "cpu" and not _ARCHITECTURE.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither cpu nor an architecture such as sm_90")
    return text


def _sections(text: str) -> list[str]:
    chosen = [word.strip() for word in text.split(",")]
    unknown = [word for word in chosen if word not in SECTIONS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(SECTIONS)}")
    return chosen


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for, kernel by kernel; return 1 if there is none or one does not compile."""
    kernels = _kernels_of(_import(arguments.file))
    if arguments.kernel:
        names = ", ".join(dict.fromkeys(kernel.key for kernel in kernels))
        kernels = [kernel for kernel in kernels if kernel.key == arguments.kernel]
        if not kernels:
            print(f"{arguments.file} has no kernel '{arguments.kernel}'; it has {names or 'none'}", file=sys.stderr)
            return 1
    if not kernels:
        print(f"{arguments.file} has no kernels", file=sys.stderr)
        return 1
    return max([_show(kernel, arguments) for kernel in kernels])


def _import(path: Path) -> ModuleType:
    """Run a file as a module of its own name, as its directory's programs would see it."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None or not path.is_file():
        raise SystemExit(f"python -m warp compile: {path} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


def _kernels_of(module: ModuleType) -> list[Kernel]:
    """List the kernels that a module defines, in the order of its lines."""
    every = [kernel for owner in list(MODULES.values()) for kernel in owner.kernels]
    own = [kernel for kernel in every if kernel.func.__globals__ is module.__dict__]
    return sorted(own, key=lambda kernel: (kernel.func.__code__.co_firstlineno, kernel.key))


def _show(kernel: Kernel, arguments: argparse.Namespace) -> int:
    head = f"{kernel.key}({', '.join(name for name, _ in kernel.parameters)})"
    if kernel.is_generic:
        print(f"# {head}: generic, so its types are those of a launch")
        return 0
    shown = arguments.show or ["ir", "adjoint", "cpp" if arguments.target == "cpu" else "cuda", "object"]
    compiled = _Compiled(kernel, arguments.target, arguments.headers)
    try:
        for section in shown:
            for title, text in _WRITERS[section](compiled):
                print(f"# {head}: {title}\n{text.rstrip()}\n")
    except WarpError as error:
        print(f"# {head}: {type(error).__name__}\n{error}", file=sys.stderr)
        return 1
    return 0


@dataclass(frozen=True)
class _Compiled:
    """A kernel on its way from the syntax tree to an object."""

    kernel: Kernel
    target: str
    has_headers: bool

    @cached_property
    def primal(self) -> Function:
        return build_kernel(self.kernel, tuple(type for _, type in self.kernel.parameters))

    @cached_property
    def adjoint(self) -> Adjoint | None:
        if not self.kernel.option("enable_backward"):
            return None
        dimensions = frozenset(range(cpp.dimensions_of(self.primal)))
        return pipeline.backward(self.primal, may_alias=False, dimensions=dimensions)

    @cached_property
    def entries(self) -> list[tuple[str, _EntryName, Function]]:
        """What can be launched: title, entry name and function."""
        found: list[tuple[str, _EntryName, Function]] = [
            ("forward", "wp_forward", pipeline.forward(self.primal)),
        ]
        if self.adjoint is not None and not self.adjoint.problems:
            if self.adjoint.recorded is not None:
                found.append(("forward on a tape", "wp_forward", self.adjoint.recorded))
            found.append(("backward", "wp_backward", self.adjoint.function))
        return found

    def text(self, emit: Callable[[Function, EmitOptions], str], name: _EntryName, function: Function) -> str:
        """Emit an entry as a launch would."""
        options = EmitOptions(
            libm=build.libm_header(),
            entry=name,
            debug=self.kernel.option("mode") == "debug",
            descending=name == "wp_backward",
            verify_fp=bool(self.kernel.option("verify_fp")),
        )
        return emit(function, options)


def _write_ir(compiled: _Compiled) -> Iterator[tuple[str, str]]:
    yield "IR", print_function(compiled.primal)


def _write_adjoint(compiled: _Compiled) -> Iterator[tuple[str, str]]:
    adjoint = compiled.adjoint
    if adjoint is None:
        yield "adjoint", "none: enable_backward is off"
    elif adjoint.problems:
        yield "adjoint", "\n".join(f"{problem.loc}: {problem.text}" for problem in adjoint.problems)
    else:
        yield "adjoint", print_function(adjoint.function)


def _write_cpp(compiled: _Compiled) -> Iterator[tuple[str, str]]:
    yield from _write_text(compiled, "C++", cpp.emit_kernel)


def _write_cuda(compiled: _Compiled) -> Iterator[tuple[str, str]]:
    yield from _write_text(compiled, "CUDA", cuda.emit_kernel)


def _write_text(compiled: _Compiled, language: str, emit: Callable[..., str]) -> Iterator[tuple[str, str]]:
    for title, name, function in compiled.entries:
        text = compiled.text(emit, name, function)
        yield f"{language}, {title}", text if compiled.has_headers else own_text(text)


def _write_object(compiled: _Compiled) -> Iterator[tuple[str, str]]:
    mode: Any = "debug" if compiled.kernel.option("mode") == "debug" else "release"
    fast_math = bool(compiled.kernel.option("fast_math"))
    for title, name, function in compiled.entries:
        if compiled.target == "cpu":
            compiler = build.find_compiler()
            source = compiled.text(cpp.emit_kernel, name, function)
            path = build.build_object(source, compiler=compiler, options=build.BuildOptions(mode, fast_math))
            yield f"object, {title}", f"{path} by {compiler.name}: {len(build.read_object(path))} bytes"
        else:
            source = compiled.text(cuda.emit_kernel, name, function)
            code = build.build_cubin(source, compiled.target, build.NvrtcOptions(mode, fast_math))
            yield f"object, {title}", f"CUBIN for {compiled.target}: {len(code)} bytes"


_WRITERS: dict[str, Callable[[_Compiled], Iterator[tuple[str, str]]]] = {
    "ir": _write_ir,
    "adjoint": _write_adjoint,
    "cpp": _write_cpp,
    "cuda": _write_cuda,
    "object": _write_object,
}
