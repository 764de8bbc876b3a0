"""The HTTP layer that all answers share: bodies, headers, base path, counting."""
