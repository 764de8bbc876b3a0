"""Arrivals: examines events before matching: the attempt that wrote them, their partition, and copies."""
