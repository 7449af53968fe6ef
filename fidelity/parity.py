"""Hold our scheduler against a recording of a real one's decisions, step by step.

A recording is a JSON file whose ``engine.name`` says which engine's it is; ``fidelity/recordings/`` has the forms. A
recording may hold more than is read; ``unread`` names it. What might bear on decisions and is not understood is
refused: an engine or mode that we do not know, an unknown setting, a key that is misspelt.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from fidelity.recordings import sglang_replay, vllm_replay
from fidelity.recordings.form import Difference, Recording
from fidelity.recordings.sglang import SglangRecording
from fidelity.recordings.vllm import VllmRecording
from simcore.core.errors import InputError, Phrase
from simcore.core.files import read_json
from simcore.core.validation import explain

_FORMS: Mapping[str, type[BaseModel]] = {"vllm": VllmRecording, "sglang": SglangRecording}
_REPLAYS: Mapping[type, Callable[[Any], Iterator[Any]]] = {
    VllmRecording: vllm_replay.replay,
    SglangRecording: sglang_replay.replay,
}
_DECIDE = ("engine.", "config.")
"""Parts in which an unknown key may bear on decisions."""


def read_recording(path: Path) -> Recording:
    """The recording in a file; raises ``FileError`` or ``InputError`` if it holds none that we understand."""
    document = read_json(path)
    form = _FORMS[_engine(document, path)]
    try:
        recording: Any = form.model_validate(document)
    except ValidationError as error:
        raise explain(error, form, f"{path}: ") from error
    for field, part in recording.parts():
        part.check_spelling(f"{path}: {field}")
        for key in part.model_extra or () if field in _DECIDE else ():
            raise InputError(f"{path}: {field}{key}", Phrase("an unknown field"), f"one of {_known(part)}")
    recording.check(f"{path}: ")
    return recording  # type: ignore[no-any-return]


def unread(recording: Recording) -> tuple[str, ...]:
    """Keys that are not read: the recorder's own."""
    return tuple(dict.fromkeys(key for _, part in recording.parts() for key in part.model_extra or ()))


def replay(recording: Recording) -> Iterator[Any]:
    """What we decide in each step, given the recorded requests; goes on for ever."""
    return _REPLAYS[type(recording)](recording)


def first_difference(recording: Recording) -> Difference | None:
    """Replay a recording; None if every step takes the same decisions, in the same order.

    Of each step the ``compared`` fields are looked at, and nothing else.
    """
    for number, (recorded, ours) in enumerate(zip(recording.recorded_steps, replay(recording), strict=False)):
        for what in recording.compared:
            theirs, own = getattr(recorded, what), getattr(ours, what)
            if isinstance(theirs, dict):
                theirs, own = list(theirs.items()), list(own.items())
            if theirs != own:
                return Difference(number, what, theirs, own)
    return None


def _engine(document: Any, path: Path) -> str:
    """The engine that a document names; vLLM's form may leave it out."""
    engine = document.get("engine") if isinstance(document, dict) else None
    name = engine.get("name", "vllm") if isinstance(engine, dict) else "vllm"
    if name not in _FORMS:
        raise InputError(f"{path}: engine.name", name, f"one of {', '.join(_FORMS)}")
    return str(name)


def _known(part: BaseModel) -> str:
    return ", ".join(type(part).model_fields)
