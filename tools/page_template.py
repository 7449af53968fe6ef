"""Prose in Markdown files of its own, with places for what a script finds out."""

import re
from pathlib import Path
from textwrap import fill

WIDTH = 120
_PLACE = re.compile(r"\{\{ (\w+) \}\}")
_ITEM = re.compile(r"- |\d+\. ")


def filled(template: Path, **parts: str) -> str:
    """The file with ``{{ name }}`` replaced by the part of that name, lines of prose wrapped anew.

    Raises ``ValueError`` unless the file has a place for each part, and a part for each place.
    """
    text = template.read_text(encoding="utf-8")
    if (places := set(_PLACE.findall(text))) != parts.keys():
        raise ValueError(f"{template.name}: no place for or no part of {', '.join(sorted(places ^ parts.keys()))}")
    return "\n".join(_wrapped(_PLACE.sub(lambda place: parts[place[1]], text)))


def _wrapped(text: str) -> list[str]:
    """Paragraphs and items of lists filled; tables, code and headings as they are."""
    lines: list[str] = []
    paragraph: list[str] = []
    code = False

    def end() -> None:
        if paragraph:
            indent = len(item[0]) if (item := _ITEM.match(paragraph[0])) else 0
            joined = " ".join(line.strip() for line in paragraph)
            lines.extend(
                fill(
                    joined, WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False
                ).splitlines()
            )
            paragraph.clear()

    for line in text.split("\n"):
        fence = line.startswith("```")
        if code or fence or not line.strip() or line.startswith(("|", "#", "!")):
            end()
            lines.append(line)
            code ^= fence
        else:
            if _ITEM.match(line):
                end()
            paragraph.append(line)
    end()
    return lines
