"""The matcher: the loop over batches of one comparison, with its checkpoints, surveys and resets."""
