"""Matching: which unmatched events there are, and which of them an event that comes is matched with."""
