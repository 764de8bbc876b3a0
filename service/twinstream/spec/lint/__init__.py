"""The lint report: what a comparison file amounts to."""
