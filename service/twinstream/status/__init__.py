"""The shape of what a matcher publishes, and API and page show."""
