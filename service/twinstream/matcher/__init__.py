"""The matcher: the loop over batches of one comparison, with its saves, its looks and its resets."""
