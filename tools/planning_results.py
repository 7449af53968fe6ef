"""Write ``docs/results/planning.md`` and the README's example: ``python tools/planning_results.py``.

Both are made of ``benchmarks/planning/results``. With ``--example`` the example there is run again, a minute or so on
two cores. With ``--check`` nothing is written, and the exit code is 1 if a document differs from what would be.
"""

import csv
import io
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from experiments.planner.answers import answers_of  # noqa: E402
from experiments.planner.planning import make_plan  # noqa: E402
from experiments.planner.question import ask  # noqa: E402
from experiments.runners import runner_of  # noqa: E402
from servetwin.plan_table import print_answers  # noqa: E402
from simcore.scenario import read_scenario  # noqa: E402

RESULTS = ROOT / "benchmarks" / "planning" / "results"
PROSE = Path(__file__).with_suffix(".md")
DOCUMENT = ROOT / "docs" / "results" / "planning.md"
README = ROOT / "README.md"
START, END = "<!-- plan: made by tools/planning_results.py -->", "<!-- end of plan -->"
EXAMPLE = "example.txt"
ACCELERATORS = ("h100-sxm", "l40s", "rtx-4090")
Rows = list[dict[str, str]]


def example() -> str:
    """What ``servetwin plan scenarios/chat-30.yaml`` prints for three accelerators."""
    path = ROOT / "scenarios" / "chat-30.yaml"
    question = ask(read_scenario(path), path.parent, accelerators=ACCELERATORS)
    with closing(runner_of()) as runner:
        answers = answers_of(make_plan(question, runner))
    stream = io.StringIO()
    print_answers(answers, Console(file=stream, width=1000, highlight=False))
    return "\n".join(line.rstrip() for line in stream.getvalue().strip("\n").splitlines())


def document() -> str:
    """The page, of its prose and the tables that there are."""
    texts = {
        "example": fenced(),
        "exhaustive": told("exhaustive.csv", exhaustive),
        "fresh": told("fresh-requests.csv", fresh),
        "configurator": told("configurator.csv", configurator),
        "ray": told("ray.csv", table),
    }
    text = PROSE.read_text(encoding="utf-8")
    for name, part in texts.items():
        text = text.replace(f"{{{name}}}", part)
    return text


def rows(name: str) -> Rows:
    """The rows of a table of results."""
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def told(name: str, of_rows: Callable[[Rows], str]) -> str:
    """What a table of results says, or that nobody has made it yet."""
    return of_rows(rows(name)) if (RESULTS / name).exists() else f"**Not measured yet**: there is no `{name}`."


def exhaustive(found: Rows) -> str:
    """How often both searches agree, and the table."""
    same = sum(row["cheapest_usd_per_h"] == row["found_usd_per_h"] for row in found)
    whole, own = (sum(int(row[name]) for row in found) for name in ("exhaustive_simulations", "simulations"))
    most = max(float(row["share"]) for row in found)
    said = (
        f"In {same} of {len(found)} problems both find the same price. The search takes {own:,} simulations, trying "
        f"everything {whole:,}: {own / whole:.1%}, at most {most:.1%} in one problem."
    )
    names = ("problem", "model", "found", "found_usd_per_h", "simulations", "exhaustive_simulations")
    return f"{said}\n\n{table([{name: row[name] for name in names} for row in found])}"


def fresh(found: Rows) -> str:
    """How many answers hold, and the table."""
    answers = {(row["problem"], row["answer"]): True for row in found}
    for row in found:
        answers[row["problem"], row["answer"]] &= row["held"] == "True"
    said = f"{sum(answers.values())} of {len(answers)} answers keep all limits on fresh requests."
    return f"{said}\n\n{table(found)}"


def configurator(found: Rows) -> str:
    """How often the split is the same, and the table."""
    same = sum(row["same_split"] == "True" for row in found)
    return f"{same} of {len(found)} cases have the same split.\n\n{table(found)}"


def table(found: Rows) -> str:
    """Rows in Markdown."""
    names = list(found[0])
    lines = [f"| {' | '.join(name.replace('_', ' ') for name in names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(row[name] for name in names)} |" for row in found]
    return "\n".join(lines)


def fenced() -> str:
    """The example as it was printed."""
    path = RESULTS / EXAMPLE
    if not path.exists():
        return f"**Not run yet**: there is no `{EXAMPLE}`."
    return f"```\n{path.read_text(encoding='utf-8')}```"


def with_block(text: str) -> str:
    """The README with the example between its markers replaced."""
    head, _, rest = text.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n{fenced()}\n{END}{tail}"


def main(check: bool, run_example: bool) -> int:
    """Write, or compare; returns the exit code."""
    if run_example:
        (RESULTS / EXAMPLE).write_text(example() + "\n", encoding="utf-8")
    documents = {DOCUMENT: document(), README: with_block(README.read_text(encoding="utf-8"))}
    if check:
        return int(any(path.read_text(encoding="utf-8") != text for path, text in documents.items()))
    for path, text in documents.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv, "--example" in sys.argv))
