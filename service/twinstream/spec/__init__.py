"""The comparison file: its typed model, loading, and what it is compiled to."""
