"""Sizes of adapters, against those of published ones and by hand."""

import pytest

from simcore.models import load_model
from simcore.models.adapters import NotAdaptableError, adapter_shape


def test_an_adapter_of_llama_has_as_many_numbers_as_peft_counts():
    """PEFT prints 41,943,040 trainable parameters for rank 16 on all linear layers of Llama 3.1 8B."""
    shape = adapter_shape(load_model("llama-3.1-8b"), 16, 1, feed_forward=True)
    assert shape.parameters == 41_943_040
    assert shape.launches == 32 * 8


def test_adapters_of_attention_alone_are_smaller():
    """By layer: queries 4096+4096, keys and values 4096+1024 each, output 4096+4096; times rank and layers."""
    shape = adapter_shape(load_model("llama-3.1-8b"), 8, 1, feed_forward=False)
    assert shape.parameters == 32 * 8 * (8192 + 2 * 5120 + 8192)


def test_each_rank_has_one_thin_matrix_whole_and_its_part_of_the_other():
    shape = adapter_shape(load_model("llama-3.1-8b"), 8, 4, feed_forward=False)
    assert shape.parameters == 32 * 8 * ((4096 + 1024) + 2 * (4096 + 256) + (1024 + 4096))


def test_experts_have_no_adapters():
    with pytest.raises(NotAdaptableError, match="other than plain attention and dense blocks"):
        adapter_shape(load_model("gpt-oss-20b"), 8, 1, feed_forward=True)
