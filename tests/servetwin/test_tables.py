"""Tables lose nothing: not in a pipe, and not in a terminal too narrow for them."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
COMMANDS = [
    ("models",),
    ("hardware",),
    ("policies",),
    ("trace", "list"),
    ("trace", "describe", str(REPOSITORY / "scenarios" / "bundled-workload.csv")),
]
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def piped(*arguments, **environment):
    process = subprocess.run(
        [sys.executable, "-m", "servetwin", *arguments],
        cwd=REPOSITORY,
        env=os.environ | environment,
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    return process.stdout


def in_a_terminal(columns, *arguments):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "servetwin", *arguments],
        cwd=REPOSITORY,
        env=environment | {"TERM": "xterm"},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        output += piece
    assert process.wait() == 0
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", output.decode())


def words(text):
    return sorted(re.findall(r"[^\s\u2500-\u257f]+", text))


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1", "COLUMNS": "40"}])
def test_a_pipe_gets_every_row_on_one_line(arguments, environment):
    output = re.sub(r"\x1b\[[0-9;]*m", "", piped(*arguments, **environment))
    assert ELLIPSIS not in output
    if len(arguments) == 1:
        names = [row["name"] for row in json.loads(piped(*arguments, "--json"))]
        assert len(re.findall(r"^.*\S.*$", output, re.MULTILINE)) == 2 + len(names), "a head, a rule, the rows"
        assert set(names) <= set(output.split())


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_narrow_terminal_shows_all_that_a_wide_one_does(arguments):
    narrow, wide = in_a_terminal(50, *arguments), in_a_terminal(300, *arguments)
    assert ELLIPSIS not in narrow
    assert all(len(word) > 24 for word in set(words(wide)) - set(words(narrow))), "only long words are folded"
    assert sorted("".join(words(narrow))) == sorted("".join(words(wide))), "not a letter is lost"


@pytest.mark.parametrize(
    ("arguments", "heads"),
    [
        (
            ("hardware",),
            ["memory (GB)", "bandwidth (GB/s)", "bf16 (TFLOP/s)", "links (GB/s)", "TDP (W)", "price (USD/h)", "as of"],
        ),
        (("models",), ["parameters (billion)", "context (tokens)", "weights (GB)", "KV (bytes/token)"]),
        (("trace", "list"), ["size (MB)", "licence"]),
    ],
)
def test_units_stand_in_the_head(arguments, heads):
    head = next(line for line in piped(*arguments).splitlines() if line.strip())
    for name in heads:
        assert name in head
