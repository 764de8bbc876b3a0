"""Intake: turns batches of records into runs of events, keeps both sides in step, and watches the topics."""
