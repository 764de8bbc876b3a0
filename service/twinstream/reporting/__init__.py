"""Reporting: the status, the divergences and the unmatched events that a matcher publishes."""
