"""What people and release tools ask of the service: HTTP, server-sent events, the page."""
