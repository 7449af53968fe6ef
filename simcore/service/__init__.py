"""One service on the virtual clock: router, replicas, sessions and clients, as SimPy processes."""
