"""Arrays on the host: the class, how they are made, copied and indexed."""
