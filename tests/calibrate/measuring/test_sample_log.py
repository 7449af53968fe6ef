"""Samples outlive whatever happens to the process that takes them, and to the file."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from calibrate.measuring.device import KernelPoint
from calibrate.measuring.repetition import KernelSample, Measured
from calibrate.measuring.sample_log import SampleLog, read_log
from simcore.core.errors import FileError

MACHINE = {"device": "a CPU", "torch": "2"}


def measured(number: int) -> Measured:
    sample = KernelSample(KernelPoint("gemm", ("fp32", number + 1, 64, 32)), 1e-3, 0.9e-3, 1.1e-3)
    return Measured(f"step {number}", (sample,), 1e-4, 2e-3, 7, 1, 0, {"clock_mhz": 2000.0})


def filled(path: Path, count: int = 5) -> SampleLog:
    log = SampleLog(path, MACHINE)
    for number in range(count):
        log.add(measured(number))
    return log


def test_what_was_kept_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "samples.jsonl"
    assert SampleLog(path, MACHINE).measured == []
    filled(path)
    again = SampleLog(path, MACHINE)
    assert again.measured == [measured(number) for number in range(5)]
    assert again.set_aside is None
    assert read_log(path) == (MACHINE, again.measured)


def test_a_line_that_does_not_end_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    filled(path)
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) - 40, len(whole) - 100):
        path.write_bytes(whole[:length])
        log = SampleLog(path, MACHINE)
        assert log.set_aside is None
        assert log.measured == [measured(number) for number in range(4)]
        log.add(measured(4))
        assert SampleLog(path, MACHINE).measured == [measured(number) for number in range(5)]


def test_a_file_with_a_broken_line_is_set_aside_and_the_rest_kept(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    filled(path)
    content = path.read_bytes()
    broken = content.replace(b"step 2", b"step 7")
    path.write_bytes(broken)
    log = SampleLog(path, MACHINE)
    assert log.set_aside == tmp_path / "samples.broken-1.jsonl"
    assert log.set_aside.read_bytes() == broken
    assert log.measured == [measured(number) for number in (0, 1, 3, 4)]
    assert SampleLog(path, MACHINE).measured == log.measured


def test_samples_that_do_not_say_whose_they_are_are_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    filled(path)
    path.write_bytes(b"?" + path.read_bytes())
    log = SampleLog(path, MACHINE)
    assert log.set_aside is not None
    assert log.measured == []
    log.add(measured(0))
    assert SampleLog(path, MACHINE).measured == [measured(0)]


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("00000000 \n" + "d202ef8d {}\n")
    with pytest.raises(FileError, match="is no log of samples"):
        read_log(path)


def test_samples_of_another_machine_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    filled(path)
    with pytest.raises(FileError, match="holds samples of torch '2', and this is '3'; choose another --out"):
        SampleLog(path, {**MACHINE, "torch": "3"})


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.calibrate.measuring.test_sample_log import MACHINE, measured
from calibrate.measuring.sample_log import SampleLog
log = SampleLog(Path(sys.argv[1]), MACHINE)
for number in range(len(log.measured), 100_000):
    log.add(measured(number))
    print(number, flush=True)
"""


def test_killing_loses_no_finished_sample(tmp_path: Path) -> None:
    """As often as SERVETWIN_KILLS says; what the process said that it had kept is there."""
    path, draw = tmp_path / "samples.jsonl", random.Random(1)
    root = str(Path(__file__).resolve().parents[3])
    for _ in range(int(os.environ.get("SERVETWIN_KILLS", "3"))):
        command = [sys.executable, "-c", WRITER.format(root=root), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
            assert process.stdout is not None
            told = [process.stdout.readline()]
            time.sleep(draw.random() * 0.05)
            process.send_signal(signal.SIGKILL)
            told += process.stdout.readlines()
        last = int([line for line in told if line.endswith("\n")][-1])
        found = SampleLog(path, MACHINE)
        assert found.set_aside is None
        assert len(found.measured) >= last + 1
        assert found.measured == [measured(number) for number in range(len(found.measured))]
