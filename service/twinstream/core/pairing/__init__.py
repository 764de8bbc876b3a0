"""Pairing: finds the partners among the events of two pieces that differ, under their order."""
