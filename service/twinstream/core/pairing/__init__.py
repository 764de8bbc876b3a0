"""Pairing: which events of two pieces that differ are partners all the same, by the order that they have."""
