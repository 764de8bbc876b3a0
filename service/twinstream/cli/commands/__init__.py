"""The commands, each a thin file of its name."""
