"""Readers of published kernel measurements; each gives ``SampleTable`` objects."""
