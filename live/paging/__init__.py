"""Paged keys and values, and the flat batches that read and write them."""
