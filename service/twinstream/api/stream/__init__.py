"""Server-sent events, and the timeline of a comparison."""
