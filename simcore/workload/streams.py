"""Random streams: one per purpose, so that a change in one place leaves all other draws as they were."""

import numpy as np

from simcore.errors import InputError


def random_stream(seed: int, purpose: str) -> np.random.Generator:
    """The generator that belongs to ``seed`` and ``purpose`` ("arrivals", "lengths", ...), at its beginning.

    Streams of different purposes are independent (NumPy's SeedSequence with the name as spawn key). Scaling an
    arrival rate therefore keeps every length, and compares two rates on the same draws (common random numbers).
    Raises InputError for a negative seed.
    """
    if seed < 0:
        raise InputError("seed", seed, "a whole number of at least 0")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(purpose.encode())))
