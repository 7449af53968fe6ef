"""The loop around the model: the scheduler of a simulation, its KV memory and its service, on a real clock."""
