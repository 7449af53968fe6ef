"""What a GGUF file's metadata say of its tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from live.weights.gguf_file import GgufFile
from simcore.core.errors import FileError

SPLITS = ("default", "gpt-2", "llama-bpe", "qwen2", "smollm")
"""Values of ``tokenizer.ggml.pre`` that are supported."""
_CONTROL, _USER_DEFINED = 3, 4
_TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end_of_turn|>")


@dataclass(frozen=True, slots=True)
class GgufVocabulary:
    """Tokens by name, merges from the first to the last, special and added tokens, and the rest of what there is."""

    ids: dict[str, int]
    merges: list[tuple[str, str]]
    special: list[str]
    added: list[str]
    split: str
    chat_template: str | None
    begin_token: int | None
    end_token: int | None
    turn_end_token: int | None


def read_vocabulary(file: GgufFile) -> GgufVocabulary:
    """The vocabulary of a GGUF file; raises ``FileError`` where it is broken or of a kind that is not supported."""
    keys = _Keys(file)
    kind = keys.get("model")
    if kind != "gpt2":
        raise FileError(file.path, f"tokenizer.ggml.model is {str(kind)[:40]!r}, expected 'gpt2' (byte-level BPE)")
    split = keys.get("pre") or "default"
    if split not in SPLITS:
        raise FileError(file.path, f"tokenizer.ggml.pre is {str(split)[:40]!r}, expected one of {', '.join(SPLITS)}")
    tokens = keys.texts("tokens")
    ids = {token: number for number, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise FileError(file.path, "tokenizer.ggml.tokens has a token twice")
    types = keys.types(len(tokens))
    return GgufVocabulary(
        ids=ids,
        merges=keys.merges(ids),
        special=[token for token, kind in zip(tokens, types, strict=True) if kind == _CONTROL],
        added=[token for token, kind in zip(tokens, types, strict=True) if kind == _USER_DEFINED],
        split=split,
        chat_template=keys.template(),
        begin_token=keys.token("bos_token_id", len(tokens)) if keys.get("add_bos_token") is True else None,
        end_token=keys.token("eos_token_id", len(tokens)),
        turn_end_token=next((ids[name] for name in _TURN_ENDS if name in ids), None),
    )


class _Keys:
    def __init__(self, file: GgufFile) -> None:
        self.file = file

    def get(self, key: str) -> Any:
        return self.file.metadata.get(f"tokenizer.ggml.{key}")

    def texts(self, key: str) -> list[str]:
        value = self.get(key)
        if not isinstance(value, list) or not value or not isinstance(value[0], str):
            raise FileError(self.file.path, f"has no list of texts tokenizer.ggml.{key}")
        return value

    def types(self, count: int) -> Sequence[int]:
        value = self.get("token_type")
        types = [] if value is None else [int(kind) for kind in value] if hasattr(value, "__len__") else []
        if len(types) != count:
            raise FileError(self.file.path, f"has {len(types)} values of tokenizer.ggml.token_type for {count} tokens")
        return types

    def merges(self, ids: dict[str, int]) -> list[tuple[str, str]]:
        pairs = []
        for merge in self.texts("merges"):
            first, _, second = merge.partition(" ")
            if first not in ids or second not in ids or first + second not in ids:
                raise FileError(self.file.path, f"has the merge {merge[:40]!r} of tokens that are not there")
            pairs.append((first, second))
        return pairs

    def template(self) -> str | None:
        value = self.file.metadata.get("tokenizer.chat_template")
        return value if isinstance(value, str) else None

    def token(self, key: str, count: int) -> int | None:
        value = self.get(key)
        if value is None:
            return None
        if type(value) is not int or not 0 <= value < count:
            raise FileError(self.file.path, f"tokenizer.ggml.{key} is {value!r}, expected one of {count} tokens")
        return value
