"""A mutation fuzzer over every kind of input: see ``python -m tools.fuzz --help``."""
