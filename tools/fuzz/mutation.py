"""Inputs that are nearly right: valid ones with a few places changed, by a seed alone."""

from collections.abc import Sequence
from random import Random

_TOKENS = (
    b"0",
    b"-1",
    b"1e400",
    b"-1e-300",
    b"1e308",
    b".inf",
    b".nan",
    b"NaN",
    b"Infinity",
    b"9" * 30,
    b"9" * 5000,
    b"0x",
    b"null",
    b"true",
    b"~",
    b"",
    b"[]",
    b"{}",
    b"[" * 60,
    b"{a: " * 60,
    b"&a [*a]",
    b"*a",
    b"<<: ",
    b"!!int x",
    b"!!float",
    b"!!python/object:x",
    b"\x00",
    b"\xff\xfe",
    b"\x1b[31m",
    b"\xc2\xb2",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x98\x80",
    b"\t",
    b"\r",
    b"\n",
    b"'",
    b'"',
    b",",
    b":",
    b"#",
    b"---\n",
    b"...",
    b"%",
    b"/dev/zero",
    b"../",
    b"1:30:30",
    b"2024-13-45",
    b"1_000",
    b"x" * 5000,
    b"\x00" * 8,
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
)
_CHANGES = (1, 1, 1, 1, 2, 3, 4)
_NUMBERS = (b"0", b"1", b"2", b"3", b"7", b"16", b"100", b"0.5", b"1e3", b"65536", b"1e-6", b"2147483647")
_LONGEST = 1 << 16


def mutated(rng: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with one to four changes."""
    content = bytearray(rng.choice(seeds))
    for _ in range(rng.choice(_CHANGES)):
        change = rng.choice((_flip, _insert, _delete, _repeat, _replace_number, _replace_number, _splice, _cut))
        change(rng, content, seeds)
    return bytes(content[:_LONGEST])


def _place(rng: Random, content: bytearray) -> int:
    return rng.randint(0, len(content))


def _flip(rng: Random, content: bytearray, seeds: Sequence[bytes]) -> None:
    if content:
        content[rng.randrange(len(content))] = rng.randrange(256)


def _insert(rng: Random, content: bytearray, seeds: Sequence[bytes]) -> None:
    place = _place(rng, content)
    content[place:place] = rng.choice(_TOKENS)


def _delete(rng: Random, content: bytearray, seeds: Sequence[bytes]) -> None:
    place = _place(rng, content)
    del content[place : place + rng.choice((1, 4, 30))]


def _repeat(rng: Random, content: bytearray, seeds: Sequence[bytes]) -> None:
    place = _place(rng, content)
    content[place:place] = content[place : place + rng.choice((1, 8, 60))] * rng.choice((1, 2, 20))


def _replace_number(rng: Random, content: bytearray, seeds: Sequence[bytes]) -> None:
    digits = [place for place, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return
    first = end = rng.choice(digits)
    while end < len(content) and content[end] in b"0123456789.eE+-":
        end += 1
    content[first:end] = rng.choice((*_NUMBERS, *_NUMBERS, *_TOKENS))


def _splice(rng: Random, content: bytearray, seeds: Sequence[bytes]) -> None:
    other = rng.choice(seeds)
    first = rng.randint(0, len(other))
    place = _place(rng, content)
    content[place : place + rng.choice((0, 20))] = other[first : first + rng.choice((5, 50))]


def _cut(rng: Random, content: bytearray, seeds: Sequence[bytes]) -> None:
    del content[_place(rng, content) :]
