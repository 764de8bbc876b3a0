"""The comparison file as data: its model, and how it is read."""
