"""Compiled kernels by address, for bridges to frameworks that call native code: no Python runs at a launch."""

from __future__ import annotations

from warp._src.launch.entries import ArgumentBlock as ArgumentBlock
from warp._src.launch.entries import EntryPoint as EntryPoint
from warp._src.launch.entries import KernelEntries as KernelEntries
from warp._src.launch.entries import RecordingEntry as RecordingEntry
from warp._src.launch.entries import compile_native as compile_native
from warp._src.launch.entries import launch_block as launch_block
from warp._src.launch.entries import native_launcher as native_launcher

__all__ = [
    "ArgumentBlock",
    "EntryPoint",
    "KernelEntries",
    "RecordingEntry",
    "compile_native",
    "launch_block",
    "native_launcher",
]
