"""The simulator: time, requests, KV memory, the cost of a step, replicas, metrics and run folders."""
