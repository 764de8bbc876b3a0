"""Clocks: the progress of each side, by Kafka's timestamps, by its events, or by its control records."""
