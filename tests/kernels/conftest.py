"""Kernels are tested on a GPU, or in Triton's interpreter (TRITON_INTERPRET=1), which cannot compile in its process."""

import os
from collections.abc import Iterator

import pytest
import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
collect_ignore_glob = ["compiled/*"] if INTERPRETED else []
if not INTERPRETED and not torch.cuda.is_available():
    collect_ignore_glob = ["test_*.py"]  # `make test` runs them in the interpreter, in a process of their own


@pytest.fixture
def device() -> torch.device:
    return torch.device("cpu" if INTERPRETED else "cuda")


@pytest.fixture(autouse=True)
def poisoned_memory() -> Iterator[None]:
    """New tensors hold not-a-number until they are written."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.utils.deterministic.fill_uninitialized_memory
    yield
    torch.use_deterministic_algorithms(False)
