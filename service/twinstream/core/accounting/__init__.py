"""Accounting: counts how each event was settled, and keeps the unmatched ones."""
