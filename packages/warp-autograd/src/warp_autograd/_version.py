"""The version of warp-autograd."""

__version__ = "0.1.0"
