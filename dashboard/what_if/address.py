"""A pair of setups as a part of an address, short enough for a link, and read as strictly as any input."""

import json
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from dashboard.what_if.setups import Pair
from simcore.core.errors import InputError, Phrase
from simcore.core.files import parse_json

KEY = "s"
"""The parameter of the address that holds the pair."""
LONGEST_TEXT = 8_000
_MOST_BYTES = 1 << 16
_PARTS = ("shared", "a", "b")
_FIELD = "the address"


def encoded(pair: Pair) -> str:
    """The pair as text of letters, digits, "-" and "_"; the same pair gives the same text.

    Raises ``InputError`` for one that is too long for a link.
    """
    document = {"shared": pair.shared, "a": pair.a, "b": pair.b}
    text = json.dumps(document, separators=(",", ":"), sort_keys=False)
    packed = urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    if len(packed) > LONGEST_TEXT or len(text.encode()) > _MOST_BYTES:
        raise InputError(
            _FIELD, Phrase("too long"), f"setups of at most {LONGEST_TEXT:,} letters; download them instead"
        )
    return packed


def decoded(text: str) -> Pair:
    """The pair in a part of an address; raises ``InputError`` for anything else. Setups are not yet checked."""
    if len(text) > LONGEST_TEXT:
        raise InputError(_FIELD, Phrase("too long"), f"at most {LONGEST_TEXT:,} letters")
    document = _unpacked(text)
    if not isinstance(document, dict) or sorted(document) != sorted(_PARTS):
        raise InputError(_FIELD, Phrase("no pair of setups"), "a link that the dashboard made")
    for name in _PARTS:
        if not isinstance(document[name], dict):
            raise InputError(f"{_FIELD}: {name}", document[name], "a mapping")
    return Pair(document["shared"], document["a"], document["b"])


def _unpacked(text: str) -> Any:
    try:
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacking = zlib.decompressobj()
        content = unpacking.decompress(packed, _MOST_BYTES)
        if not unpacking.eof or unpacking.unused_data:
            raise ValueError("longer than its bound, or not whole")
        return parse_json(content.decode())
    except (ValueError, zlib.error, RecursionError):
        raise InputError(_FIELD, Phrase("broken"), "a whole link that the dashboard made") from None
