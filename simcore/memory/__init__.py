"""KV memory: how many blocks a replica has, and who holds them."""
