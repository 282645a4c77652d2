"""The version of warp-interop-paddle."""

__version__ = "0.1.0"
