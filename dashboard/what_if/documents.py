"""Tables of the committed results, read from the documents that scripts make."""

import re
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "docs" / "results"
_RULE = re.compile(r"\|?[\s:|-]+\|[\s:|-]*")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True, slots=True)
class DocumentTable:
    """A table under its heading, all cells text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def by_column(self) -> dict[str, list[str]]:
        """The cells of each column; names that occur twice are told apart by what stands left of them."""
        names: list[str] = []
        for place, name in enumerate(self.columns):
            taken = name in names or not name
            names.append(f"{name or '–'} ({place + 1})" if taken else name)
        return {name: [row[place] for row in self.rows] for place, name in enumerate(names)}


def tables_in(path: Path) -> list[DocumentTable]:
    """The tables of a Markdown document in their order; none where there is no such document."""
    if not path.is_file():
        return []
    found: list[DocumentTable] = []
    title = ""
    lines = path.read_text(encoding="utf-8").splitlines()
    for place, line in enumerate(lines):
        if line.startswith("#"):
            title = line.lstrip("# ")
        elif _RULE.fullmatch(line) and place and lines[place - 1].startswith("|"):
            columns = _cells(lines[place - 1])
            rows = []
            for row in lines[place + 1 :]:
                if not row.startswith("|"):
                    break
                cells = _cells(row)
                rows.append((*cells, *[""] * (len(columns) - len(cells)))[: len(columns)])
            found.append(DocumentTable(title, columns, tuple(rows)))
    return found


def _cells(line: str) -> tuple[str, ...]:
    return tuple(_LINK.sub(r"\1", cell).replace("`", "").strip() for cell in line.strip().strip("|").split("|"))
