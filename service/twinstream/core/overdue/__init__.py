"""Overdue: finds the unmatched events that should have a partner by now, or are proven to have none."""
