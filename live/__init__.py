"""The real engine: models, paged keys and values in tensors, sampling and text, on a CPU or a GPU."""
