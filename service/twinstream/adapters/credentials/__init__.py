"""Secrets and certificates in files, which may be replaced while the service runs."""
