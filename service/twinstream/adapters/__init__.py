"""The outside world: one file for each client library. Wired by `twinstream.bootstrap` only."""
