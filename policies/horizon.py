"""For how many steps a decision stands."""

import sys

FOREVER = sys.maxsize
"""The decision changes only when a request arrives, finishes, is preempted, or memory runs short."""
