"""These run in Triton's interpreter (TRITON_INTERPRET=1), in a process of their own, or on a GPU."""

import os

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if not INTERPRETED and not torch.cuda.is_available():
    collect_ignore_glob = ["test_*.py"]  # `make test` runs them in the interpreter


@pytest.fixture
def device() -> str:
    return "cpu" if INTERPRETED else "cuda"
