"""Whatever ends a command that writes, what was finished before it is whole afterwards, and nothing else is touched.

``SERVETWIN_KILLS`` is how many processes each command loses, at moments drawn by a seed.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

KILLS = int(os.environ.get("SERVETWIN_KILLS", "2"))
FULL_BYTES = 300
"""A file may grow to so many bytes, as if the disk were full: less than any output has."""
SCENARIO = """\
model: smollm2-135m
cluster: {accelerator: l4}
workload:
  requests: 20
  arrivals: {name: poisson, rate_per_s: 20}
  prompt_tokens: {name: uniform, low: 20, high: 90}
  output_tokens: {name: fixed, tokens: 10}
"""
TRACE = "arrival_s,prompt_tokens,output_tokens\n" + "".join(f"{row},20,5\n" for row in range(50))
VARIED = ("--vary", "scheduler.ordering.name=fcfs,sjf", "--seeds", "2", "--jobs", "2")
SAMPLES = "kind,accelerator,engine,version,dtype,tokens_multiple_of,tokens,n,k,latency_s\n" + "".join(
    f"gemm,h100-sxm,vllm,0.19.0,bf16,1,{tokens},{n},4096,{1e-5 + tokens * n * 1e-12:.7g}\n"
    for n in (1024, 2048, 4096)
    for tokens in (1, 8, 64, 512, 4096)
)
POST = {
    "gpu": "h100-sxm", "n": 1, "tp": 1, "model": "Qwen3-8B", "precision": "bf16", "engine": "vllm", "version": "0.11.0",
    "load": "unloaded", "doubts": "", "measured": {"ttft_mean": 59.0, "tpot_mean": 7.3, "rps": 0.6},
}  # fmt: skip
POSTED = """\
model: qwen3-8b
cluster: {accelerator: h100-sxm}
engine: vllm@0.11
workload:
  requests: 5
  arrivals: {name: closed-loop, concurrency: 1}
  prompt_tokens: {name: fixed, tokens: 200}
  output_tokens: {name: fixed, tokens: 20}
"""
COMMANDS = {
    "run": ("run", "s.yaml", "--out", "out/run", "-q"),
    "compare": ("compare", "s.yaml", *VARIED, "--out", "out/compared", "-q"),
    "explain": ("explain", "s.yaml", "--out", "out/step.html"),
    "plot": ("trace", "describe", "t.csv", "--plot", "out/trace.html"),
    "sweep": ("sweep", "s.yaml", *VARIED[:4], "--out", "out/swept", "--jobs", "2", "-q"),
    "plan": (
        "plan", "s.yaml", "--slo", "ttft_p99=0.5", "--accelerators", "l4", "--most-requests", "1000", "--jobs", "1",
        "--out", "out/plan", "-q",
    ),
    "repro": ("repro", "speculative-decoding", "--out", "out/paper", "--jobs", "1"),
    "adapt": ("fidelity", "--adapt", "post", "--out", "out/host.yaml", "--jobs", "1"),
    "fit": ("calibrate", "fit", "gemm.csv", "--out", "out/profile"),
}  # fmt: skip
QUICK = ("run", "explain")
"""A folder and a file; the other commands write by the same writer, and take longer."""
EVERY_COMMAND = [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in sorted(COMMANDS)]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    (tmp_path / "t.csv").write_text(TRACE)
    (tmp_path / "gemm.csv").write_text(SAMPLES)
    (tmp_path / "post").mkdir()
    (tmp_path / "post" / "measured.json").write_text(json.dumps(POST))
    (tmp_path / "post" / "scenario.yaml").write_text(POSTED)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.md").write_text("mine")
    return tmp_path


def started(folder: Path, name: str, before: Callable[[], None] | None = None) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "servetwin", *COMMANDS[name]]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before, start_new_session=True
    )


def finished(folder: Path, name: str) -> None:
    process = started(folder, name)
    _, said = process.communicate()
    assert process.returncode == 0, said.decode()


def found(folder: Path) -> dict[str, bytes]:
    """All files but hidden ones, by path."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".servetwin" not in str(path))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def whole(files: dict[str, bytes]) -> dict[str, int]:
    """Names, and sizes of what is the same whenever it is written: a run notes how long it took, and when."""
    timed = ("summary.json", "report.html", "run.json")
    return {path: 0 if path.endswith(timed) else len(content) for path, content in files.items()}


def hidden(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".servetwin*") if path.is_dir()]


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_a_full_disk_leaves_what_was_there(folder, name):
    finished(folder, name)
    before = found(folder)
    if name == "compare":  # finished runs are kept and not written again
        (folder / "s.yaml").write_text(SCENARIO.replace("requests: 20", "requests: 21"))
        before = found(folder)

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FULL_BYTES, FULL_BYTES))

    process = started(folder, name, full)
    _, said = process.communicate()
    assert (process.returncode, said.count(b"\n")) == (2, 1), said.decode()
    assert b"cannot be written (File too large)" in said
    assert found(folder) == before
    assert hidden(folder) == []


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_a_kill_leaves_what_was_there_and_the_next_command_cleans_up(folder, name):
    began = time.monotonic()
    finished(folder, name)
    took_s = time.monotonic() - began
    before = found(folder)
    random = Random(name)
    for _ in range(KILLS):
        process = started(folder, name)
        time.sleep(random.uniform(0.3, 1.0) * took_s)
        process.kill()
        process.communicate()
        assert whole(found(folder)) == whole(before)
    finished(folder, name)
    assert whole(found(folder)) == whole(before)
    assert hidden(folder) == []


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_two_at_once_leave_one_whole_output(folder, name):
    finished(folder, name)
    before = found(folder)
    both = [started(folder, name) for _ in range(2)]
    for process in both:
        _, said = process.communicate()
        assert process.returncode == 0, said.decode()
    assert whole(found(folder)) == whole(before)
    assert hidden(folder) == []


def bound_by_modes() -> None:
    """Even the superuser, whose processes pass over the modes of files by a capability (capabilities(7))."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


@pytest.mark.parametrize("name", EVERY_COMMAND)
def test_a_folder_that_takes_nothing_is_told(folder, name):
    (folder / "out").chmod(0o555)
    process = started(folder, name, bound_by_modes)
    _, said = process.communicate()
    assert (process.returncode, said.count(b"\n")) == (2, 1), said.decode()
    assert b"allows no new entries" in said
