"""Overdue: which unmatched events should have a partner by now, and which are proven to have none."""
