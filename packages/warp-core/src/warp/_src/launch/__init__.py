"""Launches: from a kernel and arguments to compiled code that runs, and to the record of what ran."""
