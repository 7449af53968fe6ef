"""``servetwin repro``."""

import json

import pytest

PAPER = "speculative-decoding"


def test_papers_are_listed(command):
    listed = command("repro", "--list")
    assert listed.code == 0
    assert PAPER in listed.out
    assert "OSDI 2022" in listed.out


def test_a_smoke_run_prints_claims_and_writes_nothing(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = command("repro", PAPER, "--smoke", "--jobs", "1")
    assert ran.code == 0
    assert "holds" in ran.out
    assert not list(tmp_path.iterdir())


def test_json_and_the_folder_hold_the_same(command, tmp_path):
    ran = command("repro", PAPER, "--jobs", "1", "--json", "--out", tmp_path / "out")
    findings = json.loads(ran.out)
    assert findings["paper"] == PAPER
    assert json.loads((tmp_path / "out" / "findings.json").read_text()) == findings
    assert "published" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["speculative-decodign"], "the paper is 'speculative-decodign', expected one of"),
        ([], "servetwin repro is given no paper, expected the name of one, or --list."),
        ([PAPER, "--smoke", "--out", "here"], "--out is 'here', expected no folder with --smoke"),
        ([PAPER, "--jobs", "0"], "--jobs is 0, expected a whole number of at least 1."),
    ],
)
def test_wrong_input_is_told_in_a_sentence(command, arguments, said):
    ran = command("repro", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_somebody_elses_folder_is_left_alone(command, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    ran = command("repro", PAPER, "--out", tmp_path)
    assert ran.code == 2
    assert "mine.txt" in ran.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]
