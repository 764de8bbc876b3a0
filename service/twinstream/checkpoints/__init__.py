"""Checkpoints: what is saved of a comparison, in which format, and when all of it and when what changed."""
