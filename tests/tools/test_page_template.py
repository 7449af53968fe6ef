from pathlib import Path

import pytest

from tools.page_template import WIDTH, filled

TEMPLATE = """# A page of {{ title }}

One sentence. {{ long }} Another
sentence.

- an item {{ long }}
  that goes on
1. a first

{{ table }}

```yaml
a: {b: c}
```
"""


def page(tmp_path: Path, **parts: str) -> str:
    path = tmp_path / "page.md"
    path.write_text(TEMPLATE, encoding="utf-8")
    return filled(path, **parts)


def test_prose_is_wrapped_and_all_else_stays(tmp_path):
    table = "| a | b |\n|---|---|\n| " + "wide " * 40 + "| 1 |"
    lines = page(tmp_path, title="numbers", long="word " * 40, table=table).split("\n")
    assert lines[0] == "# A page of numbers"
    assert all(len(line) <= WIDTH for line in lines if not line.startswith("|"))
    assert table in "\n".join(lines)
    assert "a: {b: c}" in lines
    item = lines.index(next(line for line in lines if line.startswith("- an item")))
    assert lines[item + 1].startswith("  word")
    assert "1. a first" in lines
    assert lines[-1] == ""


def test_every_place_has_a_part_and_every_part_a_place(tmp_path):
    with pytest.raises(ValueError, match=r"page\.md: no place for or no part of table"):
        page(tmp_path, title="numbers", long="word")
    with pytest.raises(ValueError, match=r"page\.md: no place for or no part of other"):
        page(tmp_path, title="numbers", long="word", table="", other="")
