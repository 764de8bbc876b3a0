"""Checks: properties that the topic of one side must have by itself, whatever the other side wrote."""
