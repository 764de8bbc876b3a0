"""The comparison file: its typed model, its loading, and what it compiles to."""
