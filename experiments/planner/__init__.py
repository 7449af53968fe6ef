"""Which set-ups hold limits on a workload, and which of them is the cheapest."""
