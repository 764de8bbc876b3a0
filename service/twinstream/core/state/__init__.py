"""State: a comparison as plain data, for a checkpoint."""
