"""Random streams: one per purpose, so that a change in one place leaves all other draws as they were."""

import numpy as np

from simcore.core.errors import InputError


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """The generator that belongs to ``seed`` and ``purpose`` ("arrivals", "lengths", ...), at its beginning.

    Streams of different purposes are independent (NumPy's SeedSequence with the name as spawn key). Scaling an
    arrival rate therefore keeps every length, and compares two rates on the same draws (common random numbers).
    Raises InputError for a negative seed.
    """
    return np.random.default_rng(_sequence(seed, purpose))


def seed_of_part(seed: int, part: str) -> int:
    """The seed, below 2**128, with which a part of a workload draws as if it were alone; raises as above."""
    return int.from_bytes(_sequence(seed, part).generate_state(4, np.uint32).astype("<u4").tobytes(), "little")


def _sequence(seed: int, name: str) -> np.random.SeedSequence:
    if seed < 0:
        raise InputError("seed", seed, "a whole number of at least 0")
    return np.random.SeedSequence(seed, spawn_key=tuple(name.encode()))
