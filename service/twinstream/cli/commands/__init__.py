"""The commands that work on files and topics, each a thin file of its name."""
