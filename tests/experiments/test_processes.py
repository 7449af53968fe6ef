"""Processes do what they are asked, and end with whoever asked."""

import os
import signal
import subprocess
import sys
import time
from operator import neg, truediv
from pathlib import Path

import pytest

from experiments.processes import Worker, in_processes, tell
from simcore.core.errors import InputError, ServetwinError
from simcore.core.files import read_json


def test_answers_come_with_the_place_of_what_was_asked():
    assert dict(in_processes(neg, [1, 2.5, 3, 4], 2)) == {0: -1, 1: -2.5, 2: -3, 3: -4}


def test_what_a_user_got_wrong_is_raised_as_it_was():
    with pytest.raises(ServetwinError, match=r"/none\.json: no such file"):
        list(in_processes(read_json, [Path("/none.json")], 2))


def test_any_other_error_is_told_with_its_trace():
    with pytest.raises(RuntimeError, match=r"(?s)the case 3:\n.*TypeError"):
        list(in_processes(truediv, [3], 2, lambda item: f"the case {item}"))


def test_a_process_that_ends_is_told():
    with pytest.raises(ServetwinError, match="the case 7: its process ended with exit code 7"):
        list(in_processes(os._exit, [7], 2, lambda item: f"the case {item}"))


def test_errors_can_be_copied():
    assert isinstance(InputError("a", 1, "b"), ServetwinError)


ASKER = """
import sys, time
from experiments.processes import Worker, in_processes, tell
try:
    for _ in in_processes(time.sleep, [0.0, 600.0, 600.0], 2):
        print("started", flush=True)
except KeyboardInterrupt:
    sys.exit(130)
"""


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_they_end_with_the_one_that_started_them(how):
    asker = subprocess.Popen([sys.executable, "-c", ASKER], stdout=subprocess.PIPE)
    assert asker.stdout.readline() == b"started\n"
    found = children(asker.pid)
    assert len(found) == 2
    asker.send_signal(how)
    began = time.monotonic()
    asker.wait(timeout=60)
    while any(map(is_running, found)) and time.monotonic() < began + 60:
        time.sleep(0.02)
    assert not any(map(is_running, found))
    asker.stdout.close()


def test_a_task_tells_how_far_it_is():
    heard = []
    worker = Worker()
    try:
        assert worker.perform(tell, "half", str, heard.append) is None
    finally:
        worker.stop()
    assert heard == ["half"]
    assert tell("nobody hears") is None
