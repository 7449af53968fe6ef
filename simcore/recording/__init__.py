"""What a run notes while it goes: rows of requests and steps, and gaps between tokens."""
