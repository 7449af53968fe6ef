"""The document on comparisons: its example runs."""

import re
from pathlib import Path

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "compare.md").read_text(encoding="utf-8")


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", DOCUMENT, flags=re.DOTALL)
    exec(compile(example, "compare.md", "exec"), {})
    assert "TTFT mean max_batched_tokens=512" in capsys.readouterr().out
    assert (tmp_path / "runs" / "budget" / "report.html").is_file()
