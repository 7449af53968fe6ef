"""Modules stay short."""

import subprocess

from tools.module_lengths import MOST_LINES, too_long


def test_a_long_module_is_named_and_a_long_test_is_not(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "tests").mkdir()
    for name, lines in (("short.py", MOST_LINES), ("long.py", MOST_LINES + 1), ("tests/long.py", 1000)):
        (tmp_path / name).write_text("x = 1\n" * lines)
    assert too_long(tmp_path) == [("long.py", MOST_LINES + 1)]
