"""The API of the service for people and release tools: HTTP, server-sent events, the page."""
