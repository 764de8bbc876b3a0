"""Diagnosis: how far a difference goes, what it consists of, and what the owner knows of it already."""
