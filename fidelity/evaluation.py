"""Everything of a fidelity report: files read, cases simulated, outcomes and refusals kept apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.bands.bands import check_replays
from fidelity.case import Case, Outcome, Refusal
from fidelity.engine_runs import read_engine_runs
from fidelity.evaluated import Evaluated
from fidelity.execution import Progress, simulate_cases
from fidelity.harness import case_of
from fidelity.posts import read_posts
from fidelity.references import REFERENCES, Reference
from fidelity.replay import Replayed, replay
from fidelity.request_runs import read_request_run
from simcore.core.errors import FileError, InputError

REPEATED = "the figures of a row before, again"


@dataclass(frozen=True, slots=True)
class Fidelity:
    """All that was compared. ``engine_runs`` is None where no file of them was given."""

    engine_runs: Evaluated | None
    replayed: tuple[Replayed | Refusal, ...]
    references: tuple[tuple[Reference, Evaluated], ...]
    posts: Evaluated | None = None


def evaluate(
    runs: Sequence[Path] = (),
    per_request: Sequence[Path] = (),
    references: Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    replays: int = 0,
    banded_every: int = 1,
    posts: Sequence[Path] = (),
) -> Fidelity:
    """Read, simulate and compare files of engine runs, folders of per-request runs, posts, and the other references.

    Bands are made of so many ``replays``, 0 for none: of per-request runs, and of the first engine run that can be
    simulated and every ``banded_every``-th from it. All files are read before anything runs. Raises ``FileError`` or
    ``InputError`` for what cannot be read.
    """
    if jobs is not None and jobs < 1:
        raise InputError("--jobs", jobs, "a whole number of at least 1")
    check_replays("--bands", replays)
    read = _each_once([case_of(run) for path in runs for run in read_engine_runs(path)])
    folders = [read_request_run(path) for path in per_request]
    if references is not None and not references.is_dir():
        raise FileError(references, "no such folder")
    sources = [
        (reference, reference.read(references / reference.file)) for reference in REFERENCES if references is not None
    ]
    posted = [item for path in posts for item in read_posts(path)]
    cases = [case for items in (read, posted, *(items for _, items in sources)) for case in _cases(items)]
    numbers = [0 if place % banded_every else replays for place in range(sum(1 for _ in _cases(read)))]
    done = dict(zip((id(case) for case in cases), simulate_cases(cases, jobs, progress, numbers), strict=True))
    return Fidelity(
        _evaluated(read, done) if runs else None,
        tuple(replay(run, replays, jobs) for run in folders),
        tuple((reference, _evaluated(items, done)) for reference, items in sources),
        _evaluated(posted, done) if posts else None,
    )


def _each_once(items: Iterable[Case | Refusal]) -> list[Case | Refusal]:
    """The items with every case refused that repeats the scenario and the very figures of one before it."""
    seen: set[str] = set()
    kept: list[Case | Refusal] = []
    for item in items:
        if isinstance(item, Case):
            identity = repr((item.document, item.measured))
            if identity in seen:
                item = Refusal(item.name, item.labels, REPEATED)
            seen.add(identity)
        kept.append(item)
    return kept


def _cases(items: Iterable[Case | Refusal]) -> Iterable[Case]:
    return (item for item in items if isinstance(item, Case))


def _evaluated(items: Iterable[Case | Refusal], done: dict[int, Outcome | Refusal]) -> Evaluated:
    found = [done[id(item)] if isinstance(item, Case) else item for item in items]
    return Evaluated(
        tuple(item for item in found if isinstance(item, Outcome)),
        tuple(item for item in found if isinstance(item, Refusal)),
    )
