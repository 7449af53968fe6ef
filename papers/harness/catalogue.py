"""Which papers there are: every data file in this package, with the module of its name."""

from importlib import import_module
from pathlib import Path

from papers.harness.published import Published, read_published
from papers.harness.study import Study
from simcore.core.errors import UnknownNameError

FOLDER = Path(__file__).resolve().parent.parent


def paper_names() -> list[str]:
    """The names of all papers, in order."""
    return sorted(path.stem.replace("_", "-") for path in FOLDER.glob("*.yaml"))


def published_of(name: str) -> Published:
    """A paper's data file; raises ``UnknownNameError`` with the nearest name for a paper that there is not."""
    if name not in paper_names():
        raise UnknownNameError("the paper", name, paper_names())
    return read_published(FOLDER / f"{name.replace('-', '_')}.yaml")


def study_of(name: str) -> Study:
    """A paper's experiment, the ``STUDY`` of its module; errors are those of ``published_of``."""
    if name not in paper_names():
        raise UnknownNameError("the paper", name, paper_names())
    study = import_module(f"papers.{name.replace('-', '_')}").STUDY
    assert isinstance(study, Study)
    return study
