"""Errors raised by Warp, each also an instance of the built-in type that callers would expect."""

from __future__ import annotations

__all__ = [
    "ArgumentError",
    "AutogradError",
    "CompileError",
    "DeviceError",
    "GradientMismatchError",
    "InternalCompilerError",
    "KernelTypeError",
    "LaunchError",
    "MissingPluginError",
    "MissingPluginModuleError",
    "PluginConflictError",
    "PluginError",
    "PluginWarning",
    "ToolchainError",
    "UnknownNameError",
    "UnsupportedSyntaxError",
    "WarpError",
    "WarpWarning",
]


class WarpError(Exception):
    """Base class of every error that Warp raises on purpose."""


class WarpWarning(UserWarning):
    """Base class of every warning that Warp issues."""


class CompileError(WarpError, RuntimeError):
    """A kernel or function could not be compiled; the message shows the source line."""


class UnsupportedSyntaxError(CompileError):
    """The kernel uses Python syntax that has no meaning in a kernel."""


class UnknownNameError(CompileError, NameError):
    """The kernel uses a name, attribute or overload that does not exist."""


class KernelTypeError(CompileError, TypeError):
    """The operands of an expression in a kernel have types that do not go together."""


class ToolchainError(CompileError):
    """No usable C++ compiler, or the compiler refused the generated code; holds its log."""

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(f"{message}\n{log}" if log else message)
        self.log = log


class InternalCompilerError(CompileError):
    """Warp produced invalid intermediate code; please report it. Names the pass and shows the code."""


class LaunchError(WarpError, RuntimeError):
    """A kernel failed while it ran (a failed assertion, a division by zero in debug mode); `line` is its line or 0."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class ArgumentError(WarpError, TypeError, ValueError, RuntimeError):
    """An argument has the wrong type, shape or device; the message names the parameter."""


class DeviceError(WarpError, RuntimeError):
    """A device is missing, or a driver call failed; names the driver's code and what it means."""


class AutogradError(WarpError, RuntimeError):
    """A gradient was asked for that cannot be computed correctly; names the line and the remedy."""


class GradientMismatchError(AutogradError, ValueError):
    """Gradients from automatic differentiation and from finite differences disagree."""


class PluginError(WarpError, RuntimeError):
    """A plugin broke the contract of `warp.plugins`."""


class PluginConflictError(PluginError):
    """Two plugins provide the same name; the message names both."""


class MissingPluginError(PluginError, AttributeError):
    """An official name was used whose plugin is not installed; says what to install."""


class MissingPluginModuleError(PluginError, ImportError):
    """An official submodule was imported whose plugin is not installed; says what to install.

    CPython gives `AttributeError` and `ImportError` instances different memory layouts, so no single
    class can be both (docs/adr/0002).
    """


class PluginWarning(WarpWarning):
    """A plugin could not be loaded; names it and the reason. Warp works without it."""
