"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and measurements; skips the test, saying so, where it is not at hand."""
    folder = Path(os.environ.get("SERVETWIN_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no measured data: set SERVETWIN_DATA (looked in {folder})")
    return folder
