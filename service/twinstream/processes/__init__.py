"""Processes: the supervisor of the matchers, the standbys, and the processes that only show statuses."""
