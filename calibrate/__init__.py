"""Measurements in, kernel profiles out: importers of public measurements, and fits over them."""
