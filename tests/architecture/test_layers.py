"""The import arrows of the architecture, checked on the syntax trees (function bodies and type-checking blocks too)."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path.parent.name: path.parent for path in sorted((ROOT / "packages").glob("*/src/*/__init__.py"))}

BASE = {"errors", "config", "version"}
COMPILER = BASE | {"types", "ir", "builtins"}
RUNTIME = BASE | {"types", "plugins", "recording", "plugin_host", "runtime", "array"}
PUBLIC = {"facade", "plugins", "recording", "errors", "operators", "testing"}

# layer: what it may import besides itself
ALLOWED = {
    "version": set[str](),
    "errors": set[str](),
    "config": {"errors", "version"},
    "types": BASE,
    "ir": BASE | {"types"},
    "builtins": BASE | {"types", "ir"},
    "lang": COMPILER,
    "passes": COMPILER,
    "emit": COMPILER,
    "plugins": BASE | {"types"},
    "recording": BASE | {"types"},
    "plugin_host": BASE | {"types", "plugins", "recording"},
    "runtime": RUNTIME - {"runtime", "array"},
    "array": RUNTIME - {"array"},
    "interop": RUNTIME,
    "build": BASE,
    "launch": RUNTIME | {"interop", "program"},
    "program": COMPILER | RUNTIME | {"lang", "passes", "emit", "build"},
    "commands": COMPILER | RUNTIME | {"lang", "passes", "emit", "build"},
    "facade": COMPILER
    | RUNTIME
    | {"lang", "passes", "emit", "interop", "build", "launch", "program", "testing", "commands"},
    "operators": {"facade", "plugins", "recording", "errors"},
    "testing": PUBLIC,
    "examples": PUBLIC | {"config"},
    "outside": PUBLIC,
}

THIRD_PARTY = {"numpy", "pluggy"}
# Imported where they are used, since they may be absent.
OPTIONAL = {"cuda", "ziglang", "ml_dtypes", "matplotlib", "tqdm", "torch", "jax", "jaxlib", "paddle", "hypothesis"} | {
    "pytest"
}
OPTIONAL_HERE = {"outside": OPTIONAL, "examples": OPTIONAL, "testing": {"hypothesis"}}
OPTIONAL_IN_CORE = {"cuda", "ziglang", "ml_dtypes"}


def layer_of(module: str) -> str:
    """Return the layer of a module of ours, given its full name."""
    package, _, rest = module.partition(".")
    if package != "warp":
        return "outside"
    parts = rest.split(".") if rest else []
    if parts[:1] == ["_src"]:
        return _internal_layer(parts[1:])
    special = {"_version": "version", "errors": "errors", "config": "config", "plugins": "plugins"}
    special |= {"recording": "recording", "operators": "operators", "testing": "testing", "examples": "examples"}
    return special.get(parts[0] if parts else "", "facade")


def _internal_layer(parts: list[str]) -> str:
    if not parts:
        return "version"  # the package itself is empty
    if parts[0].startswith("plugin_"):
        return "plugin_host"
    is_program = parts[0] == "launch" and parts[-1].startswith("program")
    return "program" if is_program else parts[0]


def modules() -> Iterator[tuple[str, Path]]:
    """Yield name and path of every module of every distribution."""
    for package, root in SOURCES.items():
        for path in sorted(root.rglob("*.py")):
            parts = (package, *path.relative_to(root).with_suffix("").parts)
            yield ".".join(parts).removesuffix(".__init__"), path


NAMES = {name for name, _ in modules()}


def imports(name: str, path: Path) -> Iterator[tuple[str, ast.stmt]]:
    """Yield every module that a file imports, `from package import module` included."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            full_names = (f"{base}.{alias.name}" for alias in node.names)
            yield from ((full if full in NAMES else base, node) for full in full_names)


@pytest.mark.parametrize("package", SOURCES)
def test_imports_follow_the_layers(package: str) -> None:
    wrong = []
    for name, path in modules():
        if name.partition(".")[0] != package:
            continue
        layer = layer_of(name)
        assert layer in ALLOWED, f"{path}: no layer is called {layer!r}; add it to the table with its arrows"
        for imported, node in imports(name, path):
            top = imported.partition(".")[0]
            if top == "warp" or top in SOURCES:
                is_public = top == package or layer_of(imported) in PUBLIC
                target = layer_of(imported) if top == "warp" else "outside"
                if layer != target and (target not in ALLOWED[layer] or not is_public):
                    wrong.append(f"{path}:{node.lineno}: {layer} must not import {imported} ({target})")
    assert not wrong, "\n".join(wrong)


def test_third_party_imports_are_declared() -> None:
    wrong = []
    for name, path in modules():
        layer = layer_of(name)
        known = THIRD_PARTY | OPTIONAL_HERE.get(layer, OPTIONAL_IN_CORE) | set(SOURCES) | sys.stdlib_module_names
        for imported, node in imports(name, path):
            if imported.partition(".")[0] not in known:
                wrong.append(f"{path}:{node.lineno}: {name} imports {imported}")
    assert not wrong, "\n".join(wrong)


def test_one_module_knows_the_bindings_of_the_cuda_driver() -> None:
    users = [name for name, path in modules() if '"cuda.bindings.driver"' in path.read_text(encoding="utf-8")]
    assert users == ["warp._src.runtime.driver"]
    imported = {found for name, path in modules() for found, _ in imports(name, path)}
    assert not any(name.partition(".")[0] == "cuda" for name in imported)


def test_no_import_hides_in_a_function() -> None:
    wrong = []
    for name, path in modules():
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in ast.walk(function):
                if not isinstance(node, (ast.Import, ast.ImportFrom)):
                    continue
                first = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
                if first.partition(".")[0] not in OPTIONAL and first not in DEFERRED_FOR_COST.get(name, ()):
                    wrong.append(f"{path}:{node.lineno}: {function.name} imports {first}")
    assert not wrong, "\n".join(wrong)


DEFERRED_FOR_COST = {"warp._src.plugin_reader": ["importlib.metadata"]}


def test_the_check_sees_a_wrong_arrow() -> None:
    """The table itself: siblings of the compiler half, and the two halves, are apart."""
    assert not ALLOWED["lang"] & {"passes", "emit", "runtime", "array", "build"}
    assert not ALLOWED["array"] & {"ir", "builtins", "lang", "passes", "emit", "build"}
    assert [layer for layer, allowed in ALLOWED.items() if "build" in allowed] == ["program", "commands", "facade"]
    assert layer_of("warp._src.launch.program") == "program"
    assert layer_of("warp._src.plugin_reader") == "plugin_host"
    assert layer_of("warp_autograd.tape") == "outside"
