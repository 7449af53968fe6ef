"""Tasks go on while a page does something else, are ended when asked, and never mix."""

import time
from pathlib import Path
from threading import active_count

import pytest

from dashboard.what_if.background import Answers, Desk, Job, Workers
from simcore.core.files import read_json


@pytest.fixture(scope="module")
def workers():
    found = Workers(2)
    yield found
    found.stop()


def ended(job):
    assert job.wait(60)
    return job


def test_a_task_has_an_answer(workers):
    assert ended(Job(workers, abs, -3)).answer == 3


def test_a_process_serves_one_task_after_another():
    own = Workers(1)
    jobs = [Job(own, abs, -number) for number in range(5)]
    assert [ended(job).answer for job in jobs] == [0, 1, 2, 3, 4]
    assert len(own._idle) == 1
    own.stop()


def test_what_a_user_got_wrong_is_told_as_it_is(workers):
    job = ended(Job(workers, read_json, Path("/none.json")))
    assert job.error == "/none.json: no such file."
    assert job.answer is None


def test_any_other_failure_is_told_and_hurts_nothing_else(workers):
    assert "The simulation failed" in ended(Job(workers, len, 3)).error
    assert ended(Job(workers, abs, -1)).answer == 1


def test_a_task_that_is_cancelled_ends_at_once(workers):
    job = Job(workers, time.sleep, 600)
    while job._worker is None:
        time.sleep(0.01)
    job.cancel()
    assert ended(job).cancelled
    assert job.error is None


def test_a_task_that_waits_for_a_core_can_be_cancelled():
    own = Workers(1)
    first, second = Job(own, time.sleep, 600), Job(own, abs, -1)
    second.cancel()
    first.cancel()
    assert ended(second).cancelled
    assert second.answer is None


def test_twenty_quick_changes_lead_to_the_last_ones_answer(workers):
    desk = Desk(workers, Answers())
    for number in range(20):
        desk.ask("A", str(number), abs, -number)
    assert desk.job("A", "18") is None
    assert ended(desk.job("A", "19")).answer == 19
    assert desk.answer("A", "19") == 19


def test_two_visitors_share_answers_but_not_tasks(workers):
    answers = Answers()
    one, other = Desk(workers, answers), Desk(workers, answers)
    one.ask("A", "three", abs, -3)
    other.ask("A", "four", abs, -4)
    assert other.job("A", "three") is None
    ended(one.job("A", "three"))
    ended(other.job("A", "four"))
    assert one.answer("A", "three") == 3
    assert other.answer("A", "four") == 4
    assert other.answer("A", "three") == 3
    before = active_count()
    other.ask("A", "three", abs, -3)
    assert active_count() <= before


def test_one_visitor_cancels_their_own_task_alone(workers):
    answers = Answers()
    one, other = Desk(workers, answers), Desk(workers, answers)
    one.ask("A", "same", abs, -5)
    other.ask("A", "same", abs, -5)
    theirs = other.job("A", "same")
    one.leave("A")
    assert ended(theirs).answer == 5


def test_the_oldest_answers_are_forgotten():
    answers = Answers(2)
    for number in (1, 2):
        answers.keep(str(number), number)
    assert answers.get("1") == 1
    answers.keep("3", 3)
    assert [answers.get(str(number)) for number in (1, 2, 3)] == [1, None, 3]
