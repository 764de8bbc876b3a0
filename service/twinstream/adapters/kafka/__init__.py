"""Kafka, as the source of both topics."""
