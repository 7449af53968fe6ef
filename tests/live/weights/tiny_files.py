"""Small checkpoint files: a Llama in GGUF, and bytes of safetensors."""

import json
from pathlib import Path

import gguf
import numpy as np

HIDDEN, HEADS, KV_HEADS, WIDTH, INNER, LAYERS, VOCABULARY = 32, 4, 2, 8, 64, 2, 40


def write_gguf(path: Path, kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32) -> Path:
    """A Llama with two layers; its matrices of one type, its norms in float32."""
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_string("general.name", "tiny")
    writer.add_array("tokenizer.ggml.tokens", [f"token{number}" for number in range(VOCABULARY)])
    shapes = {"token_embd": (VOCABULARY, HIDDEN), "output_norm": (HIDDEN,)}
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        shapes |= {block + "attn_norm": (HIDDEN,), block + "ffn_norm": (HIDDEN,)}
        shapes |= {block + "attn_q": (HEADS * WIDTH, HIDDEN), block + "attn_output": (HIDDEN, HEADS * WIDTH)}
        shapes |= {block + f"attn_{part}": (KV_HEADS * WIDTH, HIDDEN) for part in "kv"}
        shapes |= {block + f"ffn_{part}": (INNER, HIDDEN) for part in ("gate", "up")}
        shapes |= {block + "ffn_down": (HIDDEN, INNER)}
    for name, shape in shapes.items():
        numbers = random.standard_normal(shape).astype(np.float32) * 0.3
        if len(shape) == 1 or kind is gguf.GGMLQuantizationType.F32:
            writer.add_tensor(f"{name}.weight", numbers)
        else:
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(numbers, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def safetensors_bytes(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    """A file with a header of any kind; ``length`` is what it says of the header's length."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data
