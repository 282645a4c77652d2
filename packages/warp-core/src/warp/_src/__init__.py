"""Internals of Warp; nothing here is public."""
