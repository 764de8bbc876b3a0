"""Reads secrets and certificates from files that may be replaced while the service runs."""
