"""The public names that only plugins provide, and what to install for each."""

from __future__ import annotations

from typing import Final

_BRIDGE_FUNCTIONS: Final = (
    "from_{0}",
    "to_{0}",
    "dtype_from_{0}",
    "dtype_to_{0}",
    "device_from_{0}",
    "device_to_{0}",
    "stream_from_{0}",
    "stream_to_{0}",
)


def bridge_functions(framework: str) -> tuple[str, ...]:
    """Return the public names of the functions that a bridge gives."""
    return tuple(pattern.format(framework) for pattern in _BRIDGE_FUNCTIONS)


OFFICIAL_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "autograd": ("Tape", "autograd"),
    "torch": (*bridge_functions("torch"), "torch_op"),
    "jax": (*bridge_functions("jax"), "jax_experimental", "jax_kernel", "jax_callable"),
    "paddle": (*bridge_functions("paddle"), "paddle_op"),
}
"""Names by the plugin that provides them; the plugin's name is also the extra of warp-core that installs it."""

PROVIDER_OF: Final = {name: plugin for plugin, names in OFFICIAL_NAMES.items() for name in names}
"""The official plugin that provides a name."""


def how_to_install(plugin: str) -> str:
    """Return the command that installs an official plugin."""
    return f"pip install 'warp-core[{plugin}]'"
