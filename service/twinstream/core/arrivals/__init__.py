"""Arrivals: what is known of an event before it is matched: who wrote it, where, and whether it is a copy."""
