"""Accounting: what became of each event, and what is still unmatched."""
