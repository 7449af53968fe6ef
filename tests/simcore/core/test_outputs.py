"""What is written takes the place of servetwin's own alone, in one step; nothing of a killed process stays for ever."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simcore.core import scratch
from simcore.core.errors import FileError
from simcore.core.outputs import FolderKind, begins_with, check_file, check_folder, replace_folder, replace_text

OWN = begins_with(b"ours ")
KIND = FolderKind("a pair", ("a",), {"a": OWN, "b": OWN})


def fill(text):
    def write(folder):
        for name in "ab":
            (folder / name).write_text(text)

    return write


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_of_the_kind_is_replaced_and_another_is_kept(tmp_path):
    place = tmp_path / "out"
    replace_folder(place, KIND, fill("ours 1"))
    replace_folder(place, KIND, fill("ours 2"))
    assert content(place) == {"a": "ours 2", "b": "ours 2"}
    (place / "b").write_text("mine")
    with pytest.raises(FileError, match="holds 'b', which servetwin did not write"):
        replace_folder(place, KIND, fill("ours 3"))
    assert content(place) == {"a": "ours 2", "b": "mine"}
    assert names(tmp_path) == ["out"]


def test_what_comes_while_it_is_written_is_kept(tmp_path):
    place = tmp_path / "out"
    replace_folder(place, KIND, fill("ours 1"))

    def intruded(folder):
        fill("ours 2")(folder)
        (place / "notes").write_text("mine")

    with pytest.raises(FileError, match="holds 'notes'"):
        replace_folder(place, KIND, intruded)
    assert content(place) == {"a": "ours 1", "b": "ours 1", "notes": "mine"}
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("content_there", ["mine", ""])
def test_a_file_of_others_is_never_written_over(tmp_path, content_there):
    path = tmp_path / "page.html"
    path.write_text(content_there)
    for attempt in (lambda: check_file(path, OWN), lambda: replace_text(path, "ours", OWN)):
        with pytest.raises(FileError, match="is there already, and servetwin did not write it"):
            attempt()
    assert path.read_text() == content_there
    path.write_text("ours 1")
    replace_text(path, "ours 2", OWN)
    assert path.read_text() == "ours 2"


def test_links_are_followed_and_loops_told_before_anything_is_written(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    replace_text(tmp_path / "link", "ours 1", OWN)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "ours 1"
    (tmp_path / "loop").symlink_to("loop")
    for check in (lambda: check_file(tmp_path / "loop", OWN), lambda: check_folder(tmp_path / "loop", KIND)):
        with pytest.raises(FileError, match="is a link that leads to itself"):
            check()


def test_a_device_is_no_file_to_write(tmp_path):
    with pytest.raises(FileError, match="servetwin did not write it"):
        check_file(Path("/dev/null"), OWN)


@pytest.mark.parametrize("exchange", [True, False])
def test_a_failed_move_leaves_what_was_there(tmp_path, monkeypatch, exchange):
    place = tmp_path / "out"
    replace_folder(place, KIND, fill("ours 1"))
    rename = Path.rename

    def fail(path, target):
        if path.name == "new":
            raise KeyboardInterrupt
        return rename(path, target)

    def interrupted(one, other):
        if exchange:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(Path, "rename", fail)
    monkeypatch.setattr(scratch, "_exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_folder(place, KIND, fill("ours 2"))
    assert content(place) == {"a": "ours 1", "b": "ours 1"}
    assert names(tmp_path) == ["out"]


def test_without_an_exchange_two_moves_do(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_exchange", lambda one, other: False)
    for text in ("ours 1", "ours 2"):
        replace_folder(tmp_path / "out", KIND, fill(text))
    assert content(tmp_path / "out")["a"] == "ours 2"
    assert names(tmp_path) == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from simcore.core import scratch
with scratch.scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "new").mkdir()
    if sys.argv[2] == "between":
        scratch._exchange = lambda one, other: False
        rename = Path.rename
        Path.rename = lambda path, to: os.kill(os.getpid(), signal.SIGKILL) if path.name == "new" else rename(path, to)
        scratch.move_into_place(folder / "new", Path(sys.argv[1]) / "out", folder)
    print("there", flush=True)
    sys.stdin.read() if sys.argv[2] == "alive" else os.kill(os.getpid(), signal.SIGKILL)
"""


def started(folder, how):
    command = [sys.executable, "-c", KILLED, str(folder), how]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def test_what_a_killed_process_left_goes_with_the_next_output(tmp_path):
    assert started(tmp_path, "killed").wait() == -signal.SIGKILL
    assert names(tmp_path)[0].startswith(".servetwin-")
    replace_text(tmp_path / "page", "ours", OWN)
    assert names(tmp_path) == ["page"]


def test_what_a_killed_process_had_moved_aside_is_put_back(tmp_path):
    replace_folder(tmp_path / "out", KIND, fill("ours 1"))
    assert started(tmp_path, "between").wait() == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    scratch.remove_left_over(tmp_path)
    assert content(tmp_path / "out") == {"a": "ours 1", "b": "ours 1"}
    assert names(tmp_path) == ["out"]


def test_what_a_living_process_writes_in_stays(tmp_path):
    alive = started(tmp_path, "alive")
    assert alive.stdout.readline() == b"there\n"
    replace_text(tmp_path / "page", "ours", OWN)
    assert len(names(tmp_path)) == 2
    alive.communicate()
    assert names(tmp_path) == ["page"]


def test_hidden_folders_of_others_stay(tmp_path):
    (tmp_path / ".servetwin-mine").mkdir()
    (tmp_path / ".servetwin-mine" / "notes").write_text("mine")
    (tmp_path / ".servetwin.fresh").mkdir()
    (tmp_path / ".servetwin.long-left").mkdir()
    os.utime(tmp_path / ".servetwin.long-left", (time.time() - 3600,) * 2)
    scratch.remove_left_over(tmp_path)
    assert names(tmp_path) == [".servetwin-mine", ".servetwin.fresh"]


def test_a_folder_in_which_a_process_was_killed_is_still_of_its_kind(tmp_path):
    place = tmp_path / "out"
    replace_folder(place, KIND, fill("ours 1"))
    assert started(place, "killed").wait() == -signal.SIGKILL
    assert len(names(place)) == 3
    check_folder(place, KIND)
    assert names(place) == ["a", "b"]


def test_a_hidden_folder_of_others_is_no_part_of_an_output(tmp_path):
    replace_folder(tmp_path / "out", KIND, fill("ours 1"))
    (tmp_path / "out" / ".servetwin-mine").mkdir()
    (tmp_path / "out" / ".servetwin-mine" / "notes").write_text("mine")
    with pytest.raises(FileError, match="no part of a pair"):
        check_folder(tmp_path / "out", KIND)


WRITER = """
import sys
from pathlib import Path
from simcore.core.outputs import FolderKind, begins_with, replace_folder
own = begins_with(b"ours ")
for number in range(30):
    text = f"ours {sys.argv[2]} {number}"
    replace_folder(
        Path(sys.argv[1]), FolderKind("a pair", ("a",), {"a": own, "b": own}),
        lambda new: [(new / name).write_text(text) for name in "ab"],
    )
"""


def test_two_writers_leave_one_whole_output(tmp_path):
    both = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "out"), name]) for name in ("x", "y")]
    assert [process.wait() for process in both] == [0, 0]
    found = content(tmp_path / "out")
    assert found["a"] == found["b"]
    assert found["a"].endswith(" 29")
    assert names(tmp_path) == ["out"]
