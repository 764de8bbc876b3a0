"""Findings in the owner's words: divergences, coverage, holes, receipts."""
