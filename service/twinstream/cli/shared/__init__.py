"""Shared parts of the commands: the client of the service, output, progress, receipts."""
