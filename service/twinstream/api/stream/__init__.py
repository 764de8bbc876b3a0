"""Server-sent events, and how a comparison stood."""
