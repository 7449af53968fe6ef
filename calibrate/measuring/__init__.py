"""Calibration of a machine: which shapes to measure next, how often, and how samples are kept."""
