"""What a request says of how its tokens are chosen."""

import math
from dataclasses import dataclass

from simcore.core.errors import InputError

_MOST_LOGPROBS = 20
_MOST_STOPS = 16


@dataclass(frozen=True, slots=True)
class SamplingParameters:
    """How the tokens of one request are chosen.

    A ``temperature`` of 0 is greedy: always the likeliest token. ``top_k`` (0: all) keeps the likeliest tokens,
    ``top_p`` (1: all) of those the likeliest that together have this probability. Equal ``seed``, branch and position
    give equal draws, in any batch. ``stop_strings`` end the text before them. With ``logprobs`` the logarithm of the
    chosen token's probability is told, and of so many of the likeliest; they are those of the model, before
    temperature, top-k and top-p.

    Raises ``InputError`` for a value that cannot be.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    stop_strings: tuple[str, ...] = ()
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and 0 <= self.temperature <= 100):
            raise InputError("temperature", self.temperature, "a number from 0 to 100")
        if not 0 < self.top_p <= 1:
            raise InputError("top_p", self.top_p, "a number above 0, at most 1")
        if not 0 <= self.top_k < 2**31:
            raise InputError("top_k", self.top_k, "a whole number of at least 0")
        if not -(2**63) <= self.seed < 2**63:
            raise InputError("seed", self.seed, "a whole number of 64 bits")
        if len(self.stop_strings) > _MOST_STOPS or not all(self.stop_strings):
            raise InputError("stop_strings", self.stop_strings, f"at most {_MOST_STOPS} texts, none empty")
        if self.logprobs is not None and not 0 <= self.logprobs <= _MOST_LOGPROBS:
            raise InputError("logprobs", self.logprobs, f"a whole number from 0 to {_MOST_LOGPROBS}")

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn."""
        return self.temperature == 0
