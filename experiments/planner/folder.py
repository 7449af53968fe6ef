"""The folder of a plan: ``plan.json``, ``report.html``, and for each answer a scenario and a line that launches it."""

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from experiments.planner.answers import Answer, Answers
from experiments.planner.document import document_of
from experiments.planner.sensitivity import Effect
from simcore.core.outputs import FolderKind, begins_with, check_folder, is_page, replace_folder

PLAN, REPORT, LAUNCH = "plan.json", "report.html", "launch.txt"
_MOST_ANSWERS = 1_000
_HEAD = "# servetwin plan: "


def scenario_name(number: int) -> str:
    """The file of an answer's scenario; answers count from 1."""
    return f"answer-{number}.yaml"


PLAN_FOLDER = FolderKind(
    "a plan",
    (PLAN,),
    {
        PLAN: begins_with(b'{\n  "schema_version": '),
        REPORT: is_page,
        LAUNCH: begins_with(_HEAD.encode()),
        **{scenario_name(number): begins_with(_HEAD.encode()) for number in range(1, _MOST_ANSWERS + 1)},
    },
)


def check_plan_folder(folder: Path) -> None:
    """Raise ``FileError`` unless a plan can be written to ``folder``: missing, empty, or another plan's."""
    check_folder(folder, PLAN_FOLDER)


def write_plan(answers: Answers, folder: Path, report: str, effects: Sequence[Effect] = ()) -> None:
    """Write the folder whole or not at all; raises ``FileError`` if that cannot be done."""

    def fill(new: Path) -> None:
        (new / PLAN).write_text(plan_text(answers, effects), encoding="utf-8")
        (new / REPORT).write_text(report, encoding="utf-8")
        (new / LAUNCH).write_text(launch_text(answers), encoding="utf-8")
        for number, answer in enumerate(answers.answers[:_MOST_ANSWERS], start=1):
            (new / scenario_name(number)).write_text(_scenario_text(answer), encoding="utf-8")

    replace_folder(folder, PLAN_FOLDER, fill)


def plan_text(answers: Answers, effects: Sequence[Effect] = ()) -> str:
    """``plan.json``."""
    return json.dumps(document_of(answers, effects), indent=2, allow_nan=False) + "\n"


def launch_text(answers: Answers) -> str:
    """The line that launches one replica of each answer."""
    lines = [f"{_HEAD}one replica of each answer"]
    for number, answer in enumerate(answers.answers, start=1):
        lines += ["", f"# {number}: {_named(answer)}", *(f"# {note}" for note in answer.launch_notes)]
        if answer.launch is not None:
            lines.append(answer.launch)
    return "\n".join(lines) + "\n"


def _named(answer: Answer) -> str:
    return f"{answer.set_up.model} on {answer.replicas} × {answer.set_up.label}, {answer.usd_per_h:.2f} USD/h"


def _scenario_text(answer: Answer) -> str:
    scenario = yaml.safe_dump(answer.outcome.document, sort_keys=False, allow_unicode=True)
    return f"{_HEAD}{_named(answer)}\n{scenario}"
