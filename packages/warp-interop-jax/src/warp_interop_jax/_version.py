"""The version of warp-interop-torch."""

__version__ = "0.1.0"
