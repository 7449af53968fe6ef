"""Times of collective operations among the devices of this machine: NCCL between GPUs, gloo between processes."""

import os
import time
from dataclasses import dataclass

import torch
from torch import distributed

MESSAGE_BYTES = tuple(4**power for power in range(5, 13))
"""Whole buffers, from 1 KiB to 16 MiB."""
_REPEATS = 15
_WARM_UP = 3
_OPERATIONS = {"gloo": ("all_reduce", "all_gather"), "nccl": ("all_reduce", "all_gather", "reduce_scatter")}


@dataclass(frozen=True, slots=True)
class Rank:
    """One of so many ranks that meet at the file ``store``; ``device`` is cpu or cuda."""

    number: int
    ranks: int
    device: str
    store: str


@dataclass(frozen=True, slots=True)
class Message:
    """An operation on a buffer of so many bytes, and how long it took again and again."""

    operation: str
    implementation: str
    ranks: int
    bytes: int
    seconds: tuple[float, ...]


def rank_counts(device: str) -> tuple[int, ...]:
    """How many ranks this machine can have: powers of two, up to its GPUs, or two where it has processors for them."""
    devices = torch.cuda.device_count() if device.startswith("cuda") else min(os.cpu_count() or 1, 2)
    return tuple(2**power for power in range(1, devices.bit_length()) if 2**power <= devices)


def message_times(rank: Rank) -> list[Message]:
    """What this rank measures, together with the others, each of which is a process of its own."""
    backend = "nccl" if rank.device.startswith("cuda") else "gloo"
    place = torch.device(f"cuda:{rank.number}" if backend == "nccl" else "cpu")
    if place.type == "cuda":
        torch.cuda.set_device(place)
    elif hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {rank.number % (os.cpu_count() or 1)})
    meeting = f"file://{rank.store}"
    distributed.init_process_group(backend, init_method=meeting, rank=rank.number, world_size=rank.ranks)
    try:
        return [
            Message(operation, backend, rank.ranks, size, _times(operation, size // 2 // rank.ranks, rank.ranks, place))
            for operation in _OPERATIONS[backend]
            for size in MESSAGE_BYTES
        ]
    finally:
        distributed.destroy_process_group()


def _times(operation: str, share: int, ranks: int, place: torch.device) -> tuple[float, ...]:
    """Seconds of each repetition; a rank has ``share`` of the buffer's 16-bit numbers."""
    whole = torch.zeros(share * ranks, dtype=torch.bfloat16, device=place)
    parts = [torch.zeros(share, dtype=torch.bfloat16, device=place) for _ in range(ranks)]

    def perform() -> None:
        if operation == "all_reduce":
            distributed.all_reduce(whole)
        elif operation == "all_gather":
            distributed.all_gather(parts, parts[0])
        else:
            distributed.reduce_scatter_tensor(parts[0], whole)

    found = []
    for _ in range(_WARM_UP + _REPEATS):
        distributed.barrier()
        _wait(place)
        began_s = time.perf_counter()
        perform()
        _wait(place)
        found.append(time.perf_counter() - began_s)
    return tuple(found[_WARM_UP:])


def _wait(place: torch.device) -> None:
    if place.type == "cuda":
        torch.cuda.synchronize(place)
