"""A scenario becomes objects here: the only package that knows all the others."""
