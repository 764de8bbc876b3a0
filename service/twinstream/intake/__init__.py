"""Intake: what is read becomes runs of events, in step on both sides, and what the topics do is watched."""
