"""The one way in which files and folders are written: beside first, then moved into place in one step.

What stands at the place is replaced only if its content shows that servetwin wrote it, so that nobody's own files are
lost. Whatever fails leaves what was there.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simcore.core.errors import FileError
from simcore.core.files import writing
from simcore.core.scratch import NEW, PREFIXES, is_scratch_folder, move_into_place, remove_left_over, scratch_folder

Recogniser = Callable[[Path], bool]
"""Whether the content of a file is what servetwin writes; it may raise ``OSError`` and ``ValueError``."""
PAGE_MARK = '<meta name="generator" content="servetwin">'
"""Stands at the head of every HTML page."""
_HEAD_BYTES = 4096


def begins_with(*starts: bytes) -> Recogniser:
    """Files that begin with one of these."""
    return lambda path: _head(path).startswith(starts)


def is_page(path: Path) -> bool:
    """Whether a file is an HTML page of servetwin's."""
    head = _head(path)
    return head[:14].lower() == b"<!doctype html" and PAGE_MARK.encode() in head


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


@dataclass(frozen=True, slots=True)
class FolderKind:
    """Folders that hold certain files and nothing else. ``what`` is what such a folder is; ``needed`` it never lacks.

    ``recognise`` tells by name and content whether a file is one of its own.
    """

    what: str
    needed: tuple[str, ...]
    recognise: Mapping[str, Recogniser]

    def stranger(self, folder: Path) -> str | None:
        """What is wrong with a folder as one of this kind; None for one that is, and for an empty one."""
        found = sorted(entry.name for entry in folder.iterdir() if not is_scratch_folder(entry))
        for name in found:
            if name not in self.recognise:
                return f"holds {name!r}, which is no part of {self.what} and which writing there would delete"
        if found and not set(self.needed) <= set(found):
            return f"holds {found[0]!r} but no whole {self.what.partition(' ')[2]}, and writing there would delete it"
        for name in found:
            if not _is_own(folder / name, self.recognise[name]):
                return f"holds {name!r}, which servetwin did not write and which writing there would delete"
        return None


def check_folder(folder: Path, kind: FolderKind) -> None:
    """Raise ``FileError`` unless a folder of this kind can be written to ``folder``.

    It must be missing (and its nearest parent writable), empty, or one of this kind, which is then replaced.
    """
    with writing(folder):
        place = resolved(folder)
        check_parents(place, folder)
        if place.exists():
            if not place.is_dir():
                raise FileError(folder, f"is no folder, so {kind.what} cannot be written there")
            remove_left_over(place)
            stranger = kind.stranger(place)
            if stranger is not None:
                raise FileError(folder, _with_advice(stranger))


def _with_advice(stranger: str) -> str:
    return f"{stranger}: choose another folder, or move that away"


def check_file(path: Path, recognise: Recogniser) -> None:
    """Raise ``FileError`` unless a file can be written to ``path``: missing, or one that servetwin wrote."""
    with writing(path):
        place = resolved(path)
        if place.is_dir():
            raise FileError(path, "is a folder, expected the name of a file to write")
        if not place.parent.is_dir():
            raise FileError(path, f"cannot be written, since {place.parent} is no folder")
        check_parents(place, path)
        if place.exists() and not _is_own(place, recognise):
            raise FileError(path, "is there already, and servetwin did not write it: choose another name or remove it")


def _is_own(path: Path, recognise: Recogniser) -> bool:
    try:
        return path.is_file() and not path.is_symlink() and recognise(path)
    except (OSError, ValueError):
        return False


def replace_folder(folder: Path, kind: FolderKind, fill: Callable[[Path], None]) -> None:
    """Write a folder whole or not at all: ``fill`` writes into one beside, which then takes its place.

    Raises ``FileError`` as ``check_folder`` does, and if it cannot be done.
    """
    check_folder(folder, kind)
    place = resolved(folder)
    with writing(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder(place.parent) as scratch:
            new = scratch / NEW
            new.mkdir()
            fill(new)
            before = move_into_place(new, place, scratch)
            stranger = None if before is None else kind.stranger(before)
            if before is not None and stranger is not None:  # it came while this was written
                move_into_place(before, place, scratch)
                raise FileError(folder, _with_advice(stranger))


@contextmanager
def replacing(path: Path, recognise: Recogniser) -> Iterator[Path]:
    """A path to write a file to, which then takes the place of what was at ``path``.

    Raises ``FileError`` as ``check_file`` does, and if it cannot be written.
    """
    check_file(path, recognise)
    place = resolved(path)
    with writing(path), scratch_folder(place.parent) as scratch:
        yield scratch / NEW
        check_file(path, recognise)
        os.replace(scratch / NEW, place)


def replace_text(path: Path, text: str, recognise: Recogniser) -> None:
    """Write a text file whole or not at all; errors are those of ``replacing``."""
    with replacing(path, recognise) as beside:
        beside.write_text(text, encoding="utf-8")


def is_scratch(name: str) -> bool:
    """Whether a folder of that name is one in which something is written, or was when its process was killed."""
    return name.startswith(PREFIXES)


def resolved(path: Path) -> Path:
    """Where links lead, so that what they point to is replaced and not the link; raises ``FileError`` for a loop."""
    place = Path(os.path.realpath(path))
    if place.is_symlink() and not place.exists():
        raise FileError(path, "is a link that leads to itself")
    return place


def check_parents(place: Path, shown: Path) -> None:
    """Raise ``FileError`` unless the nearest folder above ``place`` that there is takes new entries."""
    parent = place.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise FileError(shown, f"cannot be written, since {parent} is no folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise FileError(shown, f"cannot be written, since {parent} allows no new entries")
