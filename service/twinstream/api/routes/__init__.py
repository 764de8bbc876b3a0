"""The routes, and the access to them."""
