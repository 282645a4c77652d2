"""Names and submodules that plugins contribute, and those whose plugin is missing."""

from __future__ import annotations

from typing import Any

import pytest


def test_a_contributed_name_is_loaded_at_first_use(installation: Any) -> None:
    installation.add_toy()
    program = """
        import warp as wp
        print('warp_toy' in sys.modules, end=' ')
        print(wp.from_toy(3), 'from_toy' in dir(wp), 'toy' in dir(wp), wp.from_toy is wp.from_toy)
        from warp import from_toy
        import warp_toy.convert
        print(from_toy is warp_toy.convert.from_toy)
    """
    assert installation.run(program) == "False ('warp', 3) True True True\nTrue\n"


def test_adapters_are_asked_once_per_type(installation: Any) -> None:
    installation.add_toy()
    program = """
        from warp._src import plugin_host
        class ToyArray: pass
        print(plugin_host.array_adapter(ToyArray), plugin_host.array_adapter(int), plugin_host.device_alias('gpu'))
    """
    assert installation.run(program) == "<class 'list'> None None\n"


@pytest.mark.parametrize("order", [("warp.toy.convert", "warp_toy.convert"), ("warp_toy.convert", "warp.toy.convert")])
def test_both_names_of_a_submodule_are_one_module(installation: Any, order: tuple[str, str]) -> None:
    installation.add_toy()
    program = f"""
        import importlib
        first, second = map(importlib.import_module, {order})
        import warp.toy.convert, warp_toy.convert
        assert first is second is warp.toy.convert is sys.modules['warp.toy.convert'] is sys.modules['warp_toy.convert']
        assert warp.toy is warp_toy and warp.toy.convert is warp_toy.convert
        assert warp_toy.convert.__spec__.name == warp_toy.convert.__name__ == 'warp_toy.convert'
        assert warp_toy.__spec__.name == 'warp_toy' and warp_toy.__spec__.loader is warp_toy.__loader__
        try:
            raise warp.toy.convert.ToyError
        except warp_toy.convert.ToyError:
            pass
        assert importlib.reload(warp.toy.convert) is warp_toy.convert
    """
    assert installation.run(program) == ""


def test_a_submodule_runs_as_a_script(installation: Any) -> None:
    installation.add_toy()
    assert installation.run_module("warp.toy.inner.script") == "__main__ warp-toy\n"


def test_a_submodule_of_a_plugin_that_is_not_there(installation: Any) -> None:
    installation.add_toy()
    errors = installation.errors_of("import warp.toy.nothing", "import warp.nothing")
    assert errors == [
        "ModuleNotFoundError No module named 'warp.toy.nothing'",
        "ModuleNotFoundError No module named 'warp.nothing'",
    ]


@pytest.mark.parametrize(
    ("name", "extra"),
    [("Tape", "autograd"), ("from_torch", "torch"), ("jax_experimental", "jax"), ("to_paddle", "paddle")],
)
def test_an_official_name_says_what_to_install(installation: Any, name: str, extra: str) -> None:
    statements = (f"assert not hasattr(warp, {name!r})", f"warp.{name}")
    imports = (f"from warp import {name}", f"import warp.{name}.inner")
    hint = f"warp.{name} needs the '{extra}' plugin, which is not installed: pip install 'warp-core[{extra}]'"
    attribute, member, module = f"MissingPluginError {hint}", *[f"MissingPluginModuleError {hint}"] * 2
    assert installation.errors_of(*statements, *imports) == ["", attribute, member, module]


def test_the_missing_plugin_errors_are_the_built_in_ones(installation: Any) -> None:
    program = """
        import warp
        try:
            warp.Tape
        except AttributeError as error:
            assert isinstance(error, warp.errors.WarpError)
        try:
            import warp.autograd
        except ImportError as error:
            assert isinstance(error, warp.errors.WarpError) and error.name == 'warp.autograd'
    """
    assert installation.run(program) == ""


def test_any_other_name_is_a_plain_attribute_error(installation: Any) -> None:
    (error,) = installation.errors_of("warp.from_tensorflow")
    assert error == "AttributeError module 'warp' has no attribute 'from_tensorflow'"


def test_a_framework_that_cannot_be_imported_is_named(installation: Any) -> None:
    installation.add_toy(warp_toy__convert="import absent_framework\n")
    errors = installation.errors_of("warp.from_toy", "assert not hasattr(warp, 'from_toy')")
    message = "plugin 'toy' of warp-toy 1.0 failed to import warp_toy.convert: No module named 'absent_framework'"
    assert errors == [f"MissingPluginError {message}", ""]


def test_a_promise_that_is_not_kept_is_an_error(installation: Any) -> None:
    installation.add_toy(names="{'from_toy': 'warp_toy.convert:to_warp'}")
    (error,) = installation.errors_of("warp.from_toy")
    message = "plugin 'toy' of warp-toy 1.0 promises 'warp_toy.convert:to_warp' as warp.from_toy, which does not exist"
    assert error == f"PluginError {message}"
