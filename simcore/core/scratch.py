"""Hidden folders in which outputs are written before they are moved into place, and what a killed process left of them.

Each is locked by the process that uses it, and the lock ends with the process, however that ends.
"""

import ctypes
import errno
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

PREFIX = ".servetwin-"
_UNLOCKED = ".servetwin."
"""Such a folder's name until it is locked."""
PREFIXES = (PREFIX, _UNLOCKED)
NEW, OLD = "new", "old"
_LOCK, _PLACE = "lock", "place"
_PARTS = frozenset({NEW, OLD, _LOCK, _PLACE})
_UNLOCKED_S = 60.0
"""From when on a folder that is not locked is left over; one is locked at once after it is made."""
_EXCHANGE = 2
"""``RENAME_EXCHANGE`` of renameat2(2): two names change places, and at no moment is one of them missing."""
_HERE = -100
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


@contextmanager
def scratch_folder(parent: Path) -> Iterator[Path]:
    """A hidden folder in ``parent`` that is gone afterwards; those that killed processes left there go too.

    Raises ``OSError`` if it cannot be made.
    """
    remove_left_over(parent)
    folder = Path(mkdtemp(prefix=_UNLOCKED, dir=parent))
    lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = folder.rename(folder.with_name(PREFIX + folder.name.removeprefix(_UNLOCKED)))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for what is not kept, under the system's own for such; raises ``OSError`` if it cannot be made."""
    with scratch_folder(Path(gettempdir())) as scratch:
        (scratch / NEW).mkdir()
        yield scratch / NEW


def remove_left_over(parent: Path) -> None:
    """Remove the hidden folders whose process is gone; an output that one had moved aside goes back to its place."""
    with suppress(OSError):
        for folder in (*parent.glob(f"{PREFIX}*"), *parent.glob(f"{_UNLOCKED}*")):
            if is_scratch_folder(folder):
                _remove_if_left(folder)


def is_scratch_folder(folder: Path) -> bool:
    """Whether it is such a hidden folder: by its name, its owner and what it holds; raises ``OSError``."""
    return folder.name.startswith(PREFIXES) and _is_ours(folder) and _PARTS.issuperset(os.listdir(folder))


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):
        if folder.name.startswith(_UNLOCKED):
            if time.time() - folder.stat().st_mtime > _UNLOCKED_S:
                shutil.rmtree(folder, ignore_errors=True)
            return
        if not (folder / _LOCK).exists():  # its process was removing it
            shutil.rmtree(folder, ignore_errors=True)
            return
        lock = os.open(folder / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _put_back(folder)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def move_into_place(new: Path, place: Path, scratch: Path) -> Path | None:
    """Let the folder ``new`` be ``place``; returns where the folder that stood there is now, None if there was none.

    At no moment is there neither, where the file system can exchange two names; elsewhere what was there is put back
    if the second move does not happen, by the next process if this one is killed. Raises ``OSError``.
    """
    while True:
        try:
            if place.exists():
                if _exchange(new, place):
                    return new
                return _move_aside(new, place, scratch)
            new.rename(place)
            return None
        except OSError as error:
            # Another process put its output there, or took it away, in between.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT) or not new.exists():
                raise
            if error.errno == errno.ENOENT and not place.parent.exists():
                raise


def _exchange(one: Path, other: Path) -> bool:
    """Let two names change places in one step; False where that cannot be done."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(other))


def _move_aside(new: Path, place: Path, scratch: Path) -> Path:
    old = scratch / OLD
    (scratch / _PLACE).write_bytes(os.fsencode(place))
    try:
        place.rename(old)
        new.rename(place)
    finally:
        _put_back(scratch)
    return old


def _put_back(scratch: Path) -> None:
    """Whatever came in between, Ctrl-C included: what was moved aside is not lost."""
    with suppress(OSError):
        place = Path(os.fsdecode((scratch / _PLACE).read_bytes()))
        if (scratch / OLD).exists() and not place.exists() and place.parent == scratch.parent:
            (scratch / OLD).rename(place)
