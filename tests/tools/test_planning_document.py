"""``docs/results/planning.md`` and the README's example are what their script makes of results."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_documents_are_what_the_script_makes():
    script = ROOT / "tools" / "planning_results.py"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0
