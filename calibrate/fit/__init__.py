"""Fits of kernel latency, each a table that ``simcore.cost.calibrated`` reads."""
