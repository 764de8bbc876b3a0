"""Readers of recorded outputs, line by line, and of values from a Python program."""
