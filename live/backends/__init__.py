"""Who computes: torch on any device, or the project's Triton kernels."""

import torch

from live.backends.base import Attending, Backend
from live.backends.torch_backend import TorchBackend
from live.backends.triton_backend import TritonBackend
from simcore.core.errors import UnknownNameError

__all__ = ["BACKENDS", "Attending", "Backend", "make_backend"]

BACKENDS: dict[str, type[Backend]] = {"torch": TorchBackend, "triton": TritonBackend}


def make_backend(name: str | None, device: torch.device) -> Backend:
    """The backend of a name; where there is none, kernels on a GPU and torch on a CPU."""
    if name is None:
        name = "triton" if device.type == "cuda" else "torch"
    if name not in BACKENDS:
        raise UnknownNameError("backend", name, BACKENDS)
    return BACKENDS[name]()
