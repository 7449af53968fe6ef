"""Recorded decisions of real schedulers, in the form of each engine, and how to repeat them."""
