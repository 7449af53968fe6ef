"""The next token of each request: greedy, or drawn by a seed of its own."""
