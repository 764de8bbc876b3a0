"""What was found, in the words of its owner: divergences, coverage, holes, receipts."""
