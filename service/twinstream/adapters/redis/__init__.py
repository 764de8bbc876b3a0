"""Redis, or Valkey, as the store of checkpoints."""
