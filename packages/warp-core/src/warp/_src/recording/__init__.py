"""The recording layer: what ran, in which order, and which memory it wrote."""
