"""Warp and Apache Arrow share memory."""
