"""Runnable examples: `python -m warp.examples.terrain`."""
