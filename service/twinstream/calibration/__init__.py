"""Calibration: infers noise from two runs of one version, and the tightest file that makes them equal."""
