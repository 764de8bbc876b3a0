"""From a record to its value: formats, headers, control records."""
