"""Compiled kernels by address, for bridges to frameworks that call native code: no Python runs at a launch."""

from __future__ import annotations

from warp._src.launch.entries import ArgumentBlock as ArgumentBlock
from warp._src.launch.entries import EntryPoint as EntryPoint
from warp._src.launch.entries import KernelEntries as KernelEntries
from warp._src.launch.entries import RecordingEntry as RecordingEntry
from warp._src.launch.entries import compile_native as compile_native
from warp._src.launch.entries import launch_block as launch_block
from warp._src.launch.entries import native_launcher as native_launcher
from warp._src.launch.entries_cuda import DeviceEntries as DeviceEntries
from warp._src.launch.entries_cuda import DeviceEntryPoint as DeviceEntryPoint
from warp._src.launch.entries_cuda import DeviceRecording as DeviceRecording
from warp._src.launch.entries_cuda import RecordHeader as RecordHeader
from warp._src.launch.entries_cuda import driver_function as driver_function
from warp._src.launch.entries_cuda import driver_message as driver_message
from warp._src.launch.entries_cuda import primary_context as primary_context

__all__ = [
    "ArgumentBlock",
    "DeviceEntries",
    "DeviceEntryPoint",
    "DeviceRecording",
    "EntryPoint",
    "KernelEntries",
    "RecordHeader",
    "RecordingEntry",
    "compile_native",
    "driver_function",
    "driver_message",
    "launch_block",
    "native_launcher",
    "primary_context",
]
