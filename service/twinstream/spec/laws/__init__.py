"""The laws of a comparison file: what is refused, and why."""
