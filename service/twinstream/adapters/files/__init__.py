"""Recorded outputs, read line by line, and values of a program."""
