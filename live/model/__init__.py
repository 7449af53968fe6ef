"""Decoders of the Llama family: configuration, weights, forward pass, and a plain pass to hold it against."""
