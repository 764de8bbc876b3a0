"""The commands that ask a running service, each a thin file of its name."""
