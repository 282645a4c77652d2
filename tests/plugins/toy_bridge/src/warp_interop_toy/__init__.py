"""Warp and the toy framework share memory."""
