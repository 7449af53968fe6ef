"""Figures of one run, one idea a module; each function answers None where there is nothing to draw."""
