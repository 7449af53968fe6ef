"""What the documents show is what the code does."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from policies.ordering import Ordering
from simcore.hardware import accelerator_names

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def code_blocks(document: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readme_shows_what_the_quickstart_prints():
    assert subprocess.run([sys.executable, ROOT / "tools" / "regenerate.py", "--check"], check=False).returncode == 0


def test_the_python_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (example,) = code_blocks("README.md", "python")
    assert len(example.splitlines()) <= 20
    exec(compile(example, "README.md", "exec"), {})
    assert float(capsys.readouterr().out.split()[0]) > 0
    assert (tmp_path / "runs" / "first" / "report.html").is_file()


def test_the_policy_example_is_a_policy():
    example, *_ = code_blocks("CONTRIBUTING.md", "python")
    names: dict = {"__name__": "example"}
    exec(compile(example, "CONTRIBUTING.md", "exec"), names)
    policy = names["ShortestPromptFirst"]()
    assert isinstance(policy, Ordering)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


def test_the_script_replaces_the_block_alone():
    script = runpy.run_path(str(ROOT / "tools" / "regenerate.py"))
    document = f"before\n{script['START']}\nold\n{script['END']}\nafter"
    assert script["with_block"](document, "new") == (
        f"before\n{script['START']}\n```\nnew\n```\n{script['END']}\nafter"
    )


def test_the_readme_counts_the_accelerators_that_there_are():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    counted = re.search(r"on (\d+) accelerators", text)
    assert counted is not None
    assert counted.groups() == (str(len(accelerator_names())),)
