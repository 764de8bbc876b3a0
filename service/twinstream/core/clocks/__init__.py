"""Clocks: how far each side has come, by Kafka's timestamps, by the events, or by the versions' own word."""
