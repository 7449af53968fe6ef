import torch
from hypothesis import given
from hypothesis import strategies as st

from live.model.config import read_decoder_config
from live.paging.kv_tensors import KVTensors, kv_block_bytes

CONFIG = read_decoder_config(
    {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 8, "vocab_size": 10, "max_position_embeddings": 64,
        "torch_dtype": "float32", "rms_norm_eps": 1e-5,
    },
    "tiny",
)  # fmt: skip
BLOCKS, HOST_BLOCKS = 6, 4


def filled() -> KVTensors:
    """Every block holds its number, values with a minus."""
    kv = KVTensors(CONFIG, BLOCKS, 4, torch.float32, torch.device("cpu"), HOST_BLOCKS)
    kv.keys += torch.arange(BLOCKS).view(1, -1, 1, 1, 1)
    kv.values -= torch.arange(BLOCKS).view(1, -1, 1, 1, 1)
    return kv


def held(kv: KVTensors) -> list[int]:
    """The number that each block holds, in all layers and heads, of keys and values."""
    assert (kv.keys == -kv.values).all()
    assert (kv.keys == kv.keys[:1, :, :1, :1, :1]).all()
    return [int(number) for number in kv.keys[0, :, 0, 0, 0]]


def test_sizes() -> None:
    kv = filled()
    assert kv.keys.shape == (3, BLOCKS, 2, 4, 4)
    assert kv.block_bytes == kv_block_bytes(CONFIG, 4, torch.float32) == 2 * 3 * 2 * 4 * 4 * 4


def test_copy_on_write() -> None:
    kv = filled()
    kv.copy([0, 0, 5], [3, 1, 2])
    kv.copy([], [])
    assert held(kv) == [0, 0, 5, 0, 4, 5]


@given(st.permutations(range(BLOCKS)), st.permutations(range(HOST_BLOCKS)), st.permutations(range(BLOCKS)))
def test_blocks_survive_on_the_host(taken: list[int], places: list[int], back: list[int]) -> None:
    kv = filled()
    taken, back = taken[:HOST_BLOCKS], back[:HOST_BLOCKS]
    kv.swap_out(taken, places)
    kv.keys.fill_(77)
    kv.values.fill_(-77)
    kv.swap_in(places, back)
    assert held(kv) == [dict(zip(back, taken, strict=True)).get(block, 77) for block in range(BLOCKS)]
