"""Diagnosis: the extent of a difference, its findings, and the known differences that cover them."""
