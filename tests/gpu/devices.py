"""The device that the steps run on."""

from __future__ import annotations

import importlib

import warp as wp


def use(name: str) -> wp.Device:
    """Make the first GPU current, or that of a stand-in for the driver."""
    if name == "stand-in":
        importlib.import_module("tests.cuda.fake_driver").install()
    wp.set_device("cuda:0")
    return wp.get_device()
