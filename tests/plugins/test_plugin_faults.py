"""Plugins that conflict, break, are too old or are switched off; and the distribution Warp cannot live beside."""

from __future__ import annotations

from typing import Any

import pytest

USE = """
    import warnings
    import warp
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter('always')
        try:
            print(warp.from_toy(1))
        except Exception as error:
            print(type(error).__name__, error, sep=': ')
    for warning in issued:
        print(warning.category.__name__, warning.message, sep=': ')
    print(warp.__version__ != '')
"""


def test_two_providers_of_one_name(installation: Any) -> None:
    installation.add_toy()
    installation.add_toy("warp-other", "other")
    providers = "provided by both plugin 'other' of warp-other 1.0 and plugin 'toy' of warp-toy 1.0"
    remedy = "uninstall one, or choose with WARP_PLUGINS"
    assert installation.run(USE) == f"PluginConflictError: warp.from_toy is {providers}; {remedy}\nTrue\n"
    assert installation.run(USE, plugins="toy") == "('warp', 1)\nTrue\n"
    assert installation.run(USE, plugins=" other , ") == "('warp', 1)\nTrue\n"


def test_a_plugin_may_not_take_a_name_of_warp(installation: Any) -> None:
    installation.add_toy(names="{'errors': 'warp_toy:ORIGIN'}")
    output = installation.run(USE)
    assert "PluginWarning: plugin 'toy' of warp-toy 1.0, which could not be loaded" in output
    assert "it contributes errors, which Warp itself provides" in output


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("raise RuntimeError('wrong weather')", "RuntimeError: wrong weather"),
        ("import absent_framework", "ModuleNotFoundError: No module named 'absent_framework'"),
        ("pass", "AttributeError: module 'warp_toy.plugin' has no attribute 'plugin'"),
        ("import 7", "SyntaxError: invalid syntax (plugin.py, line 1)"),
    ],
)
def test_a_broken_plugin_is_a_warning_that_names_it(installation: Any, broken: str, reason: str) -> None:
    installation.add_toy(warp_toy__plugin=broken)
    expected = [
        "AttributeError: module 'warp' has no attribute 'from_toy'",
        f"PluginWarning: plugin 'toy' of warp-toy 1.0, which could not be loaded: {reason}; Warp works without it",
        "True",
    ]
    assert installation.run(USE).splitlines() == expected


@pytest.mark.parametrize(("version", "age"), [("0", "version 0"), ("2", "version 2"), ("None", "no version at all")])
def test_a_plugin_for_another_interface_is_refused(installation: Any, version: str, age: str) -> None:
    installation.add_toy(api_version=version)
    output = installation.run(USE)
    assert f"it was written for {age} of the plugin interface (warp_api_version), this Warp has version 1" in output


def test_a_misspelt_hook_is_refused(installation: Any) -> None:
    plugin = """
        from warp.plugins import hookimpl
        class Plugin:
            warp_api_version = 1
            @hookimpl
            def warp_name_space(self):
                return {}
        plugin = Plugin()
    """
    installation.add_toy(warp_toy__plugin=plugin)
    assert "unknown hook 'warp_name_space'" in installation.run(USE)


@pytest.mark.parametrize("selection", ["none", "other"])
def test_a_plugin_can_be_switched_off(installation: Any, selection: str) -> None:
    installation.add_toy()
    installation.add_toy("warp-other", "other", names="{}")
    assert installation.run(USE, plugins=selection) == (
        "AttributeError: module 'warp' has no attribute 'from_toy'\nTrue\n"
    )


def test_a_selection_of_something_absent_is_a_warning(installation: Any) -> None:
    assert "PluginWarning: WARP_PLUGINS names 'toi', which is not installed" in installation.run(USE, plugins="toi")


def test_an_official_name_of_a_disabled_plugin_says_so(installation: Any) -> None:
    installation.add_toy("warp-autograd", "autograd", names="{'Tape': 'warp_autograd.convert:from_toy'}")
    program = """
        import warp
        try:
            warp.Tape
        except AttributeError as error:
            print(error)
    """
    message = "warp.Tape comes from plugin 'autograd' of warp-autograd 1.0, which is disabled: by WARP_PLUGINS"
    assert installation.run(program, plugins="none") == f"{message}\n"


def test_the_command_line_lists_all(installation: Any) -> None:
    installation.add_toy()
    program = "import runpy; sys.argv[1:] = ['plugins']; runpy.run_module('warp', None, '__main__', True)"
    lines = installation.run(f"try: {program}\nexcept SystemExit as end: print(end.code)").splitlines()
    assert [line.split()[0] for line in lines] == ["autograd", "jax", "paddle", "torch", "toy", "0"]
    assert lines[0].split(maxsplit=3)[3] == "pip install 'warp-core[autograd]'"
    assert lines[4].split() == ["toy", "active", "warp-toy", "1.0"]


def test_the_command_line_shows_faults(installation: Any) -> None:
    installation.add_toy()
    installation.add_toy("warp-other", "other")
    installation.add_toy("warp-broken", "broken", warp_broken__plugin="raise ValueError(1)")
    program = "import runpy; sys.argv[1:] = ['plugins']; runpy.run_module('warp', None, '__main__', True)"
    output = installation.run(f"try: {program}\nexcept SystemExit as end: print(end.code)")
    assert "broken" in output
    assert "ValueError: 1" in output
    assert "conflict: warp.from_toy is provided by both" in output
    assert output.splitlines()[-1] == "1"


def test_warp_refuses_to_run_beside_its_namesake(installation: Any) -> None:
    installation.add("warp_lang")
    program = """
        try:
            import warp
        except ImportError as error:
            print(error)
    """
    message = installation.run(program)
    assert message.startswith("warp-lang 1.0 is installed in this environment. It also provides a package named 'warp'")
    assert "pip uninstall warp-lang" in message
