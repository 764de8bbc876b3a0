"""What several commands need: the client of the service, output, progress, receipts."""
