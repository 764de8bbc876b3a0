"""Compiles the comparison file to the objects of the core."""
