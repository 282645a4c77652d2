"""The version of warp-core."""

__version__ = "0.1.0"
