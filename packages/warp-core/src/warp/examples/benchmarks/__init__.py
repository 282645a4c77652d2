"""Benchmarks; those of a framework come with the bridge to it."""
