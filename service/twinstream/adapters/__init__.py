"""Adapters to the outside world: one file for each client library, wired only by `twinstream.bootstrap`."""
