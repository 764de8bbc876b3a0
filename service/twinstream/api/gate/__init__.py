"""The gate: whether a release may go on, and what it still needs."""
