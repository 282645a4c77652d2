"""Passes over the intermediate representation; each takes valid IR and leaves valid IR."""
