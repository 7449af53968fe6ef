"""KV memory that is not paged: the fragmentation study of ``docs/results/memory.md``."""
