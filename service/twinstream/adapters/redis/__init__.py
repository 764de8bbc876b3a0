"""Redis, or Valkey, as the store of checkpoints and as the relay between processes."""
