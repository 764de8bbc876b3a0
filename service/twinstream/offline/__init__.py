"""Offline: recorded outputs, or stretches of topics, compared once from beginning to end."""
