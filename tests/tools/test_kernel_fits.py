"""The document of kernel fits is what its script writes."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.long
def test_kernel_fits_are_regenerated(shared_data):
    command = [sys.executable, "tools/kernel_fits.py", "--data", str(shared_data / "profiles"), "--check"]
    made = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr or "kernel-fits.md differs from what tools/kernel_fits.py writes"
