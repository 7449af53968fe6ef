"""``docs/kernels.md`` shows what its script makes of the committed measurements."""

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_document_is_what_the_script_makes():
    script = runpy.run_path(str(ROOT / "docs" / "kernel_results.py"))
    text = "\n".join(script["document"]()) + "\n"
    assert (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8") == text
