"""Bridges: the conformance kit on a toy framework installed as a wheel, and what the host makes of declarations."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

TEMPLATE = Path(__file__).parent / "toy_bridge"

METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: warp-interop-toy\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "entry_points.txt": "[warp.plugins]\ntoy = warp_interop_toy.plugin:plugin\n",
}


def build_wheel(directory: Path) -> Path:
    """Pack the template as its build backend would, which tests cannot download."""
    assert METADATA["entry_points.txt"].splitlines()[1].split(" = ")[1] in (TEMPLATE / "pyproject.toml").read_text()
    wheel = directory / "warp_interop_toy-1.0-py3-none-any.whl"
    contents = {
        path.relative_to(TEMPLATE / "src").as_posix(): path.read_text() for path in TEMPLATE.rglob("src/**/*.py")
    }
    contents |= {f"warp_interop_toy-1.0.dist-info/{name}": text for name, text in METADATA.items()}
    lines = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in contents.items():
            archive.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(text.encode())}")
        archive.writestr("warp_interop_toy-1.0.dist-info/RECORD", "\n".join([*lines, "RECORD,,", ""]))
    return wheel


@pytest.fixture(scope="module")
def toy_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the toy framework and its bridge from a wheel."""
    directory = tmp_path_factory.mktemp("toy")
    wheel = build_wheel(directory)
    site = directory / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def run(toy_site: Path, *arguments: str) -> str:
    """Run Python with the toy framework beside everything that is installed here."""
    paths = [str(toy_site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_conformance(site: Path, *options: str) -> str:
    """Run the template's conformance tests."""
    options += ("-q", "-p", "no:cacheprovider", "--rootdir", str(TEMPLATE), "-W", "error")
    return run(site, "-m", "pytest", *options, str(TEMPLATE / "conformance.py"))


def test_the_toy_bridge_conforms(toy_site: Path) -> None:
    report = run_conformance(toy_site)
    assert "failed" not in report
    assert "passed" in report


BROKEN = {
    "adjoints of another operand": (
        "[found[place] for place in operator.array_places]",
        "[found[place] for place in reversed(operator.array_places)]",
    ),
    "adjoints that are lost": ("return [found[place]", "return [None and found[place]"),
    "adjoints of adjoints": (
        "operator.run_adjoint(values, results, adjoints",
        "operator.run_adjoint(values, results, results",
    ),
    "results that arrive as inputs": ("return results[0] if", "return values[0] if"),
    "a gradient that is not shared": ("get=lambda tensor: tensor.gradient", "get=toy.zeros_like"),
    "strides that are forgotten": ("tensor.shape, tensor.strides, tensor.dtype", "tensor.shape, None, tensor.dtype"),
    "an array that is not kept": ("strides, dtype, array)", "strides, dtype, None)"),
    "a device that is made up": ('"cpu" if place in (toy.HOST, "host") else None', '"cpu"'),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_kit_sees_faults(toy_site: Path, tmp_path: Path, fault: str) -> None:
    before, after = BROKEN[fault]
    for path in toy_site.rglob("*"):
        if path.suffix in (".py", ".txt") or path.name == "METADATA":
            target = tmp_path / path.relative_to(toy_site)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(path.read_text())
    sources = [tmp_path / "warp_interop_toy" / name for name in ("bridge.py", "op.py")]
    (source,) = (path for path in sources if before in path.read_text())
    assert source.read_text().count(before) == 1
    source.write_text(source.read_text().replace(before, after))
    with pytest.raises(AssertionError, match="1 failed"):
        run_conformance(tmp_path, "-x")


def test_bridges_give_names_and_aliases(toy_site: Path) -> None:
    program = """if True:
        import sys
        import warp as wp
        assert 'toy' not in sys.modules and 'from_toy' in dir(wp)
        names = 'from_toy to_toy dtype_from_toy dtype_to_toy device_from_toy device_to_toy'.split()
        assert all(callable(getattr(wp, name)) for name in names)
        assert wp.from_toy is wp.from_toy
        import toy
        assert wp.dtype_to_toy(wp.uint32) is toy.int32 and wp.dtype_from_toy(toy.int32) is wp.int32
        assert wp.get_device(toy.HOST) is wp.get_device('cpu')
        assert wp.zeros(3, dtype=toy.float64).dtype is wp.float64
        try:
            wp.from_toy(toy.tensor([], (0,), toy.complex64))
        except TypeError as error:
            print(error)
        try:
            wp.stream_from_toy()
        except RuntimeError as error:
            print(error)
        """
    lines = run(toy_site, "-c", program).splitlines()
    assert "complex64" in lines[0]
    assert lines[1] == "stream_from_toy: toy has no streams"


def test_gradients_follow_the_tensor_until_another_is_assigned(toy_site: Path) -> None:
    program = """if True:
        import toy
        import warp as wp
        tensor = toy.tensor([1.0, 2.0], (2,), toy.float32)
        a = wp.from_toy(tensor, requires_grad=True)
        a.grad.fill_(5.0)
        first = tensor.gradient
        tensor.gradient = None  # as frameworks clear gradients
        assert a.grad.list() == [0.0, 0.0] and tensor.gradient.elements() == [0.0, 0.0]
        a.grad.fill_(3.0)
        assert tensor.gradient.elements() == [3.0, 3.0] and first.elements() == [5.0, 5.0]

        own, kept = wp.zeros(2), a.grad
        a.grad = own
        assert a.grad is own
        a.grad = kept  # what a backward pass puts back
        tensor.gradient = None
        assert a.grad.list() == [0.0, 0.0] and a.grad is not kept

        b = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
        made = wp.to_toy(b)
        assert made.needs_gradient and made.gradient.address == b.grad.ptr
        made.gradient = None
        b.grad.fill_(4.0)
        assert made.gradient.elements() == [4.0, 4.0]
        del made
        assert b.grad.list() == [4.0, 4.0]
        assert not wp.to_toy(b, requires_grad=False).needs_gradient

        given = toy.tensor([7.0, 8.0], (2,), toy.float32)
        c = wp.from_toy(tensor, grad=given)
        assert c.grad.list() == [7.0, 8.0]
        whole = toy.tensor([0], (1,), toy.int32)
        d = wp.from_toy(whole, requires_grad=True)  # the framework has no gradients of integers
        assert d.grad is not None and whole.gradient is None
        """
    run(toy_site, "-c", program)


def bridge_plugin(bridges: str, names: str = "{}") -> str:
    return f"""
        from warp.plugins import hookimpl
        class Plugin:
            warp_api_version = 1
            @hookimpl
            def warp_bridges(self):
                return {bridges}
            @hookimpl
            def warp_namespace(self):
                return {names}
        plugin = Plugin()
        """


def test_a_name_of_the_same_plugin_replaces_a_derived_one(installation: Any) -> None:
    plugin = bridge_plugin("{'toy': 'warp_toy.bridge:BRIDGE'}", "{'to_toy': 'warp_toy.convert:to_toy'}")
    installation.add(
        "warp-toy", {"toy": "warp_toy.plugin:plugin"}, warp_toy__plugin=plugin, warp_toy__convert="to_toy = 5"
    )
    assert installation.run("import warp; print(warp.to_toy, 'from_toy' in dir(warp))") == "5 True\n"


def test_two_bridges_to_one_framework_are_a_conflict(installation: Any) -> None:
    for name in ("one", "two"):
        plugin = bridge_plugin(f"{{'toy': 'warp_{name}.bridge:BRIDGE'}}")
        installation.add(f"warp-{name}", {name: f"warp_{name}.plugin:plugin"}, **{f"warp_{name}__plugin": plugin})
    (error,) = installation.errors_of("warp.from_toy")
    assert error.startswith("PluginConflictError warp.from_toy is provided by both plugin 'one'")


@pytest.mark.parametrize(
    ("module", "error"),
    [
        ("BRIDGE = 3", "PluginError plugin 'toy' of warp-toy 1.0 promises a bridge named 'toy' as"),
        ("import nothing_here", "MissingPluginError plugin 'toy' of warp-toy 1.0 failed to import warp_toy.bridge"),
    ],
)
def test_a_bridge_that_cannot_be_used_says_why(installation: Any, module: str, error: str) -> None:
    plugin = bridge_plugin("{'toy': 'warp_toy.bridge:BRIDGE'}")
    installation.add("warp-toy", {"toy": "warp_toy.plugin:plugin"}, warp_toy__plugin=plugin, warp_toy__bridge=module)
    installation.add("toy", None, toy="class Tensor: pass")
    assert installation.errors_of("warp.from_toy")[0].startswith(error)
    program = """
        import warp, toy
        try:
            warp.get_device(toy.Tensor())
        except RuntimeError as error:
            print(type(error).__name__)
    """
    # A framework whose bridge is broken is a warning, and what would have come from it is unknown.
    assert installation.run(program, warnings="ignore") == "UnknownDeviceError\n"
