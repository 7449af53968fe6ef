"""The example of docs/guides/new-paper.md is a paper that runs."""

import re
from pathlib import Path

import pytest

from papers.harness import catalogue
from papers.harness.report import render_paper
from papers.harness.running import reproduce

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "guides" / "new-paper.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return found


@pytest.fixture
def smith(tmp_path, monkeypatch):
    """The two files of the page, in a folder of papers."""
    (tmp_path / "smith.yaml").write_text(block("yaml"), encoding="utf-8")
    (tmp_path / "smith.py").write_text(block("python"), encoding="utf-8")
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    monkeypatch.setattr("papers.__path__", [str(tmp_path), *__import__("papers").__path__])


def test_the_paper_of_the_page_holds(smith):
    assert catalogue.paper_names() == ["smith"]
    findings, measured, study = reproduce("smith")
    assert [finding.verdict for finding in findings.claims] == ["holds"]
    assert findings.claims[0].ours.high < 1
    assert findings.practice.startswith("Serve short requests first")
    assert "Mean latency" in render_paper(findings, study.charts(measured, findings.published.curves))
