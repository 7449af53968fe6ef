"""``docs/results/memory.md`` shows what its script computes."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
def test_the_document_is_what_the_script_makes(shared_data):
    script = runpy.run_path(str(ROOT / "tools" / "memory_results.py"))
    text = script["document"](shared_data)
    assert (ROOT / "docs" / "results" / "memory.md").read_text(encoding="utf-8") == text
