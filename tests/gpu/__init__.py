"""What runs on a machine with a GPU; see README.md."""
