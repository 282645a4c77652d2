"""Structured SSA: operations, builder, verifier, printer and interpreter."""
