"""Where weights come from: safetensors folders, GGUF files, or a seed; no pickle is ever read."""
