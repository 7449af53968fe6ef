"""What each step of a live run did and where its time went."""

from array import array

import numpy as np
from numpy.typing import NDArray

PARTS = ("between", "inputs", "forward", "sample", "output")
"""Of a step's time: before it (commit and records of the last, events, planning, waiting), making inputs, the model's
pass, sampling, and handing out tokens."""
COUNTS = (
    "decoding", "decode_context", "chunks", "chunk_tokens", "chunk_pairs", "chunk_context", "rows", "moved_blocks",
)  # fmt: skip
"""What was computed: decodes and the tokens before them; prompt chunks, their tokens, the pairs of a new token and one
that it attends to, and the tokens before them; sampled rows; blocks copied or swapped."""
_WIDTH = 1 + len(PARTS) + len(COUNTS)


class StepTimes:
    """One row per step: when it began, its parts in nanoseconds, and its counts; of the last ``most`` at least."""

    def __init__(self, most: int | None = None) -> None:
        self._rows = array("q")
        self._longest = None if most is None else 2 * most * _WIDTH

    def add(self, start_ns: int, parts_ns: tuple[int, ...], counts: tuple[int, ...]) -> None:
        """Keep a step; the order is that of ``PARTS`` and ``COUNTS``."""
        self._rows.extend((start_ns, *parts_ns, *counts))
        if len(self._rows) == self._longest:
            del self._rows[: self._longest // 2]

    def columns(self) -> dict[str, NDArray[np.int64]]:
        """``start_ns``, each part with ``_ns``, ``step_ns`` in all, and the counts."""
        names = ("start_ns", *(f"{part}_ns" for part in PARTS), *COUNTS)
        rows = np.frombuffer(self._rows, dtype=np.int64).reshape(-1, len(names)).copy()
        found = {name: rows[:, place] for place, name in enumerate(names)}
        found["step_ns"] = rows[:, 1 : 1 + len(PARTS)].sum(axis=1)
        return found
