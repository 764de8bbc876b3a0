"""Arrivals: the checks before matching: replays, repeats, copies of barriers, and partitions."""
