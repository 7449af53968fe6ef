"""Text to tokens and back: tokenizers, chat templates, and output that grows token by token."""
