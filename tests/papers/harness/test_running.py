"""Cells are shared out, and put in their places whatever order they come in."""

from contextlib import closing

import pytest

from experiments.processes import ProcessPool
from experiments.runners import ThisProcess
from papers.harness.catalogue import published_of, study_of
from papers.harness.running import perform, reproduce, tasks_of
from simcore.core.errors import ServetwinError, UnknownNameError

PAPER = "speculative-decoding"


def test_any_runner_gives_the_same():
    documents = []
    for runner in (ThisProcess(), ProcessPool(2)):
        with closing(runner):
            documents.append(reproduce(PAPER, runner, smoke=True)[0].document())
    assert documents[0] == documents[1]


def test_progress_is_told():
    told = []
    reproduce(PAPER, smoke=True, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, len(tasks_of(PAPER, smoke=True))) for done in range(1, len(told) + 1)]


@pytest.mark.parametrize("ask", [published_of, study_of, tasks_of])
def test_an_unknown_paper_is_told_with_the_nearest(ask):
    with pytest.raises(UnknownNameError, match="Did you mean 'speculative-decoding'"):
        ask("speculative-decodign")


def test_an_error_names_the_cell(monkeypatch):
    def fails(cell):
        raise ServetwinError("no.")

    task = tasks_of(PAPER)[0]
    monkeypatch.setattr("papers.harness.running.study_of", lambda name: type("S", (), {"measure": staticmethod(fails)}))
    with pytest.raises(ServetwinError, match=f"{PAPER}, .* seed 0: no"):
        perform(task)
