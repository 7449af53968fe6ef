"""Published results, each reproduced by one command: a module and a data file of its name for every paper.

``harness`` is what they share. ``docs/guides/new-paper.md`` tells how to add one.
"""
