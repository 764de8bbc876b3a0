"""Sums up differences: groups of them, their patterns of values, and a sentence for each group."""
