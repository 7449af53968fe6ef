"""Fixtures shared by all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and measurements.

    Skips the test, saying so, where it is not at hand; fails it where ``SERVETWIN_REQUIRE_DATA`` is set.
    """
    folder = Path(os.environ.get("SERVETWIN_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        reason = f"no measured data: set SERVETWIN_DATA (looked in {folder})"
        if os.environ.get("SERVETWIN_REQUIRE_DATA"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
