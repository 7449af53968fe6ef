"""Models for the live engine's tests."""

from pathlib import Path

import pytest
import torch

from live.known_models import smollm2_file
from live.opening import OpenModel, open_model


@pytest.fixture(scope="session")
def smollm2() -> OpenModel:
    return open_model(smollm2_file())


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"
