"""Tokens to text and back, with SmolLM2's vocabulary."""

from pathlib import Path

import gguf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from live.known_models import smollm2_file
from live.opening import OpenModel
from live.text.detokeniser import Detokeniser
from live.text.tokenizer import TextTokenizer, tokenizer_of_folder, tokenizer_of_gguf
from live.weights.gguf_file import GgufFile
from simcore.core.errors import FileError

TOKENIZER = tokenizer_of_gguf(GgufFile(smollm2_file()))
# SmolLM2 has no tokens for some control characters, and for the bytes of characters further up.
CHARACTERS = st.characters(codec="utf-8", max_codepoint=0x1FFFF, categories=["L", "N", "P", "S", "M"])
TEXTS = st.text(st.one_of(CHARACTERS, st.sampled_from("ab .,\n'é日語🙂👩\u200d한")), max_size=60)


def test_tokens_are_those_of_the_model(smollm2: OpenModel) -> None:
    """From SmolLM2's published tokenizer: digits stand alone, a space belongs to the word after it."""
    assert smollm2.gguf is not None
    names = smollm2.gguf.metadata["tokenizer.ggml.tokens"]
    tokens = [names[token] for token in TOKENIZER.encode("The capital's 1234,  x")]
    assert tokens == ["The", "Ġcapital", "'s", "Ġ", "1", "2", "3", "4", ",", "Ġ", "Ġx"]
    assert TOKENIZER.encode("<|im_start|>user") == [1, names.index("user")]
    assert TOKENIZER.special(1) == "<|im_start|>"
    assert TOKENIZER.end_tokens == (2,)
    assert TOKENIZER.begin_token is None


@given(TEXTS)
def test_text_survives_a_round_trip(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text or "<" in text


@given(TEXTS, st.lists(st.integers(0, 49_151), max_size=40))
def test_growing_text_is_the_whole_text_and_splits_no_character(text: str, tokens: list[int]) -> None:
    for output in (TOKENIZER.encode(text), tokens):
        detokeniser = Detokeniser(TOKENIZER)
        parts = [detokeniser.add(token) for token in output]
        assert "".join([*parts, detokeniser.finish()]) == TOKENIZER.decode(output)
        if "\ufffd" not in TOKENIZER.decode(output):
            assert not any("\ufffd" in part for part in parts)


@given(st.text("abc", max_size=40), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_text_ends_before_the_first_stop_string(text: str, stops: list[str]) -> None:
    detokeniser = Detokeniser(TOKENIZER, stops)
    given_out = ""
    for token in TOKENIZER.encode(text):
        given_out += detokeniser.add(token)
        assert not any(stop in given_out for stop in stops)
    given_out += detokeniser.finish()
    places = [(text.index(stop) + len(stop), text.index(stop)) for stop in stops if stop in text]
    assert given_out == (text[: min(places)[1]] if places else text)
    assert detokeniser.stopped == bool(places)


def test_a_tokenizer_in_a_folder(tmp_path: Path) -> None:
    TOKENIZER.tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(
        '{"bos_token": {"content": "<|im_start|>"}, "add_bos_token": true, "eos_token": "<|im_end|>",'
        ' "chat_template": "{{ messages[0].content }}"}'
    )
    found = tokenizer_of_folder(tmp_path, (0,))
    assert found.encode("The capital") == [1, *TOKENIZER.encode("The capital")]
    assert found.end_tokens == (0, 2)
    assert found.chat_template == "{{ messages[0].content }}"
    (tmp_path / "chat_template.jinja").write_text("other")
    assert tokenizer_of_folder(tmp_path).chat_template == "other"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": {"type": "BPE"}}', '{"model": 1e999}'])
def test_a_broken_tokenizer_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(FileError, match="is no tokenizer"):
        tokenizer_of_folder(tmp_path)


def vocabulary_file(path: Path, **changed: object) -> GgufFile:
    writer = gguf.GGUFWriter(path, "llama")
    entries = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "ab", "<e>"], "token_type": [1, 1, 1, 3]}
    entries |= {"merges": ["a b"], "eos_token_id": 3}
    for key, value in (entries | changed).items():
        name = f"tokenizer.ggml.{key}"
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, str):
            writer.add_string(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return GgufFile(path)


def test_a_vocabulary_in_gguf(tmp_path: Path) -> None:
    found: TextTokenizer = tokenizer_of_gguf(vocabulary_file(tmp_path / "a.gguf"))
    assert found.encode("abba<e>") == [2, 1, 0, 3]
    assert found.end_tokens == (3,)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"model": "llama"}, "tokenizer.ggml.model is 'llama', expected 'gpt2'"),
        ({"pre": "unheard-of"}, "tokenizer.ggml.pre is 'unheard-of', expected one of default, gpt-2"),
        ({"tokens": ["a", "a", "ab", "<e>"]}, "has a token twice"),
        ({"tokens": [1, 2, 3, 4]}, "no list of texts tokenizer.ggml.tokens"),
        ({"token_type": [1]}, "has 1 values of tokenizer.ggml.token_type for 4 tokens"),
        ({"merges": ["a c"]}, "the merge 'a c' of tokens that are not there"),
        ({"merges": ["ab"]}, "the merge 'ab' of tokens that are not there"),
        ({"eos_token_id": 4}, "eos_token_id is 4, expected one of 4 tokens"),
    ],
)
def test_a_broken_vocabulary_is_refused(changed: dict[str, object], problem: str, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=problem):
        tokenizer_of_gguf(vocabulary_file(tmp_path / "a.gguf", **changed))
