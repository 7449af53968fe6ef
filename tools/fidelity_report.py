"""Write ``docs/results/fidelity.md`` and its figures: ``make fidelity``, about two minutes on two cores.

With ``python tools/fidelity_report.py --check`` nothing is written, and the exit code is 1 if the document or a figure
differs from what would be.

The measured data are no part of this repository; they are looked for where the environment variable
``SERVETWIN_DATA`` points, else in ``shared/data`` beside the checkout.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dashboard.fidelity_wording import shown  # noqa: E402
from experiments.bands.bands import LEVEL  # noqa: E402
from fidelity.deviation import deviation  # noqa: E402
from fidelity.evaluation import Fidelity, evaluate  # noqa: E402
from fidelity.fitted import CHOSEN, FITTED  # noqa: E402
from fidelity.harness import SHORTEST_SHARE  # noqa: E402
from fidelity.host_fit import TPOT, TTFT, fittable, left_out  # noqa: E402
from fidelity.replay import Replayed  # noqa: E402
from fidelity.request_runs import REQUESTS  # noqa: E402
from fidelity.setups import REQUESTS_PER_CLIENT  # noqa: E402
from fidelity.table import Table  # noqa: E402
from fidelity.tables import tables  # noqa: E402
from simcore.core.errors import ServetwinError  # noqa: E402
from tools.fidelity_figures import draw_bias, draw_replay, draw_scatter  # noqa: E402
from tools.page_template import WIDTH, filled  # noqa: E402
from tools.publishing import publish  # noqa: E402

DATA = Path(os.environ.get("SERVETWIN_DATA", ROOT.parent / "shared" / "data"))
DOCUMENT = "fidelity.md"
START, END = "<!-- errors: made by tools/fidelity_report.py -->", "<!-- end of errors -->"
FIGURES = "figures"
REPLAYS = 12
BANDED_EVERY = 41
"""No multiple or divisor of the numbers of concurrencies and setups in a row of the file."""


def main(check: bool) -> int:
    """Write the document and its figures, or compare; returns the exit code."""
    try:
        fidelity = evaluate(
            (DATA / "measured" / "engine_runs.csv",),
            tuple(sorted(path.parent for path in (DATA / "measured" / "vllm-per-request").glob(f"*/{REQUESTS}"))),
            DATA,
            replays=REPLAYS,
            banded_every=BANDED_EVERY,
            posts=(DATA / "measured" / "public_benchmarks",),
        )
    except ServetwinError as error:
        print(f"tools/fidelity_report.py: {error}", file=sys.stderr)
        return 2

    def write(folder: Path) -> None:
        (folder / FIGURES).mkdir(exist_ok=True)
        (folder / DOCUMENT).write_text("\n".join(_lines(fidelity, folder)) + "\n", encoding="utf-8")

    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    quoted = with_quote(text, quote(fidelity))
    if not check:
        readme.write_text(quoted, encoding="utf-8")
    elif quoted != text:
        print("README.md quotes other errors than would be written", file=sys.stderr)
        return publish(write, check) or 1
    return publish(write, check)


def quote(fidelity: Fidelity) -> str:
    """What the README says of errors: those of groups that no constant has seen."""
    outcomes = fidelity.engine_runs.outcomes if fidelity.engine_runs else ()
    known = fittable(outcome for outcome in outcomes if outcome.case.labels["harness"] == "known")
    apart = left_out(known)
    parts = []
    for kind, name in (("dense", "dense models"), ("MoE", "MoE models")):
        chosen = [apart[id(one)] for one in known if one.case.labels["kind"] == kind]
        medians = [deviation(chosen, key) for key in (TTFT, TPOT)]
        shares = [f"{found.median:.1%}" for found in medians if found is not None]
        parts.append(f"{' and '.join(shares)} for {name} ({len(chosen)} rows)")
    return (
        "Median errors of mean TTFT and mean TPOT on InferenceX rows whose engine, model and accelerator no fitted "
        f"constant has seen: {'; '.join(parts)}."
    )


def with_quote(document: str, sentence: str) -> str:
    """The document with the sentence between its markers."""
    head, _, rest = document.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n{fill(sentence, WIDTH, break_on_hyphens=False)}\n{END}{tail}"


def _lines(fidelity: Fidelity, folder: Path) -> Iterator[str]:
    yield introduction()
    for title, path in _figures(fidelity, folder / FIGURES):
        yield ""
        yield f"![{title}]({path.relative_to(folder).as_posix()})"
    for table in tables(fidelity):
        yield ""
        yield from _markdown(table)


def introduction() -> str:
    """What comes before the figures and tables."""
    return filled(
        Path(__file__).with_suffix(".md"),
        requests_per_client=str(REQUESTS_PER_CLIENT),
        shortest_share=f"{SHORTEST_SHARE:g}",
        level=f"{LEVEL:.0%}",
        replays=str(REPLAYS),
        banded_every=str(BANDED_EVERY),
        fitted="\n".join(f"- {constant}" for constant in FITTED),
        chosen="\n".join(f"- {choice}" for choice in CHOSEN),
    ).rstrip("\n")


def _figures(fidelity: Fidelity, folder: Path) -> Iterator[tuple[str, Path]]:
    """Draw all figures; yields the title and the file of each."""
    known = [
        outcome
        for outcome in (fidelity.engine_runs.outcomes if fidelity.engine_runs else ())
        if outcome.case.labels["harness"] == "known"
    ]
    if known:
        draw_scatter(known, folder / "fidelity-engine-runs.svg")
        yield "InferenceX rows, simulated over measured", folder / "fidelity-engine-runs.svg"
        draw_bias(known, folder / "fidelity-bias.svg")
        yield "Median error by concurrency", folder / "fidelity-bias.svg"
    for run in fidelity.replayed:
        if isinstance(run, Replayed):
            path = folder / f"fidelity-{run.labels['run'].lower()}.svg"
            draw_replay(run, path)
            yield f"{run.labels['run']}, measured and simulated", path


def _markdown(table: Table) -> Iterator[str]:
    yield f"## {table.title}"
    yield ""
    if table.note:
        yield fill(table.note, WIDTH, break_on_hyphens=False)
        yield ""
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{'---|' + '---:|' * (len(table.columns) - 1)}"
    for row in table.rows:
        yield f"| {' | '.join(shown(cell) for cell in row)} |"


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
