"""A verdict receipt for a change ticket: as data, as Markdown, and what a comparison file leaves out."""
