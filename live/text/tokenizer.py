"""Byte-level BPE tokenizers, from ``tokenizer.json`` or from the metadata of a GGUF file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

from live.text.gguf_vocabulary import GgufVocabulary, read_vocabulary
from live.weights.gguf_file import GgufFile
from simcore.core.errors import FileError
from simcore.core.files import read_json, read_text

_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")


@dataclass(frozen=True, slots=True)
class TextTokenizer:
    """A tokenizer, the chat template that goes with it (None: there is none), and the tokens that end an output.

    ``begin_token`` is put before every prompt, where there is one.
    """

    tokenizer: Tokenizer
    chat_template: str | None = None
    begin_token: int | None = None
    end_tokens: tuple[int, ...] = ()

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, the names of special tokens in it read as these."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        if self.begin_token is not None and ids[:1] != [self.begin_token]:
            return [self.begin_token, *ids]
        return list(ids)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens; special ones leave no trace, bytes that are no UTF-8 become U+FFFD."""
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True)

    def special(self, token: int | None) -> str:
        """The name of a special token, empty where there is none."""
        return "" if token is None else self.tokenizer.id_to_token(token) or ""


def tokenizer_of_gguf(file: GgufFile) -> TextTokenizer:
    """The tokenizer that a GGUF file's metadata describe.

    Raises ``FileError`` for metadata that are broken, and for kinds that are not supported.
    """
    vocabulary = read_vocabulary(file)
    try:
        whole_words = vocabulary.split == "llama-bpe"
        tokenizer = Tokenizer(models.BPE(vocabulary.ids, vocabulary.merges, ignore_merges=whole_words))
    except Exception as error:  # the library raises nothing more special
        raise FileError(file.path, f"has a vocabulary that cannot be used ({error})") from None
    tokenizer.pre_tokenizer = _pre_tokenizer(vocabulary.split)
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(name, special=True, normalized=False) for name in vocabulary.special]
    tokenizer.add_special_tokens(special)
    tokenizer.add_tokens([AddedToken(name, special=False, normalized=False) for name in vocabulary.added])
    return TextTokenizer(tokenizer, vocabulary.chat_template, vocabulary.begin_token, _ends(vocabulary))


def _pre_tokenizer(split: str) -> pre_tokenizers.PreTokenizer:
    """How text is cut before pairs are merged, by the name that GGUF gives it."""
    if split == "smollm":
        return pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    if split in ("gpt-2", "default"):
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    pattern = _LLAMA3_SPLIT if split == "llama-bpe" else _QWEN2_SPLIT
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def _ends(vocabulary: GgufVocabulary) -> tuple[int, ...]:
    ends = {vocabulary.end_token, vocabulary.turn_end_token}
    return tuple(sorted(token for token in ends if token is not None))


def tokenizer_of_folder(folder: Path, end_tokens: tuple[int, ...] = ()) -> TextTokenizer:
    """The tokenizer of a checkpoint folder: ``tokenizer.json``, with the template of ``tokenizer_config.json``.

    ``end_tokens`` are those of the model's configuration. Raises ``FileError`` where ``tokenizer.json`` is missing or
    broken.
    """
    file = folder / "tokenizer.json"
    text = read_text(file, "JSON file")
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises nothing more special
        raise FileError(file, f"is no tokenizer ({str(error)[:200]})") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    config = _optional(folder / "tokenizer_config.json")
    begin = tokenizer.token_to_id(_name(config.get("bos_token"))) if config.get("add_bos_token") else None
    end = tokenizer.token_to_id(_name(config.get("eos_token")))
    ends = {*end_tokens, *([] if end is None else [end])}
    return TextTokenizer(tokenizer, _template(folder, config), begin, tuple(sorted(ends)))


def _template(folder: Path, config: dict[str, Any]) -> str | None:
    """A file of its own in newer checkpoints."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return read_text(file, "chat template")
    template = config.get("chat_template")
    return template if isinstance(template, str) else None


def _optional(file: Path) -> dict[str, Any]:
    content = read_json(file) if file.is_file() else {}
    if not isinstance(content, dict):
        raise FileError(file, "expected a JSON object")
    return content


def _name(token: Any) -> str:
    """A special token, which configurations state as a text or as an object."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""
