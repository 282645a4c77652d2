"""Names of the runtime under the module where older programs look for them: `wp.context.init()`."""

from __future__ import annotations

from warp._src.lang.modules import Module as Module
from warp._src.lang.modules import get_module as get_module
from warp._src.lang.objects import Function as Function
from warp._src.lang.objects import Kernel as Kernel
from warp._src.launch.launch import Launch as Launch
from warp._src.launch.launch import launch as launch
from warp._src.launch.loading import init as init
from warp._src.runtime.device import Device as Device
from warp._src.runtime.device import DeviceLike as Devicelike
from warp._src.runtime.device import get_device as get_device
from warp._src.runtime.stream import Event as Event
from warp._src.runtime.stream import Stream as Stream

__all__ = [
    "Device",
    "Devicelike",
    "Event",
    "Function",
    "Kernel",
    "Launch",
    "Module",
    "Stream",
    "get_device",
    "get_module",
    "init",
    "launch",
]
