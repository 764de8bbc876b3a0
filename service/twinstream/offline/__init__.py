"""Offline: compares recorded outputs, or stretches of topics, once from beginning to end."""
