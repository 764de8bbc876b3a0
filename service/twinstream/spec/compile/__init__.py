"""From the comparison file to what the core needs."""
