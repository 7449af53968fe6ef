"""A step told in parts: the batch that is asked about, and what each kind of kernels takes of it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from simcore.core.bounds import MOST_DIGITS
from simcore.core.errors import InputError
from simcore.cost.calibrated import Source
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.term import Term

_NUMBER = rf"\d{{1,{MOST_DIGITS}}}"
_DECODES = re.compile(rf"({_NUMBER})x({_NUMBER})", re.ASCII)
_CHUNK = re.compile(rf"({_NUMBER})(?:@({_NUMBER}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StepShape:
    """A batch: ``decodes`` requests that hold ``context_tokens`` each, and chunks of (tokens, tokens computed before).

    Every chunk is taken to end its prompt, so that one token of it is sampled.
    """

    decodes: int = 0
    context_tokens: int = 0
    chunks: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "StepShape":
        """Read ``64x2048+512@1024``: 64 decodes of 2048 tokens each and a chunk of 512 after 1024 computed ones.

        Raises ``InputError`` for any other text.
        """
        decodes = context_tokens = 0
        chunks, least = [], 1
        for part in text.split("+"):
            if (found := _DECODES.fullmatch(part)) and not decodes:
                decodes, context_tokens = int(found[1]), int(found[2])
                least = min(least, decodes, context_tokens)
            elif found := _CHUNK.fullmatch(part):
                chunks.append((int(found[1]), int(found[2] or 0)))
                least = min(least, int(found[1]))
            else:
                raise InputError("--shape", text, "decodes and chunks such as 64x2048, 512@1024 or 64x2048+512")
        if least == 0:
            raise InputError("--shape", text, "at least one token in every part")
        return cls(decodes, context_tokens, tuple(chunks))

    @property
    def tokens(self) -> int:
        """Tokens that the step computes."""
        return self.decodes + sum(tokens for tokens, _ in self.chunks)

    @property
    def requests(self) -> int:
        """Requests in the step, each of which samples a token."""
        return self.decodes + len(self.chunks)

    def __str__(self) -> str:
        parts = [f"{self.decodes}x{self.context_tokens}"] if self.decodes else []
        parts += [f"{tokens}@{computed}" if computed else str(tokens) for tokens, computed in self.chunks]
        return "+".join(parts)


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """The ``count`` kernels of one kind in a step, all together: on one rank, so are its ``flops`` and ``bytes``.

    ``inside`` tells whether the price lies in the calibrated range; ``errors`` are those of the fit, None where the
    price is no fit.
    """

    name: str
    count: int
    seconds: float
    flops: float
    bytes: float
    source: str
    inside: bool
    errors: ErrorQuantiles | None = None

    @classmethod
    def of(cls, term: Term, tokens: int) -> "OperatorTime":
        """A term over so many tokens."""
        price = term.price
        return cls(
            term.name,
            term.count,
            term.seconds(tokens),
            term.flops(tokens),
            term.bytes(tokens),
            str(price.source),
            price.inside(tokens),
            price.errors_at(tokens),
        )

    @property
    def extrapolated(self) -> bool:
        """Whether a fit to this accelerator's kernels is used beyond what it saw."""
        return self.errors is not None and not self.inside and self.source != Source.ALPHA_BETA

    def joined(self, other: "OperatorTime") -> "OperatorTime":
        """Like kernels of other layers, or of another stage, counted in."""
        return replace(
            self,
            count=self.count + other.count,
            seconds=self.seconds + other.seconds,
            flops=self.flops + other.flops,
            bytes=self.bytes + other.bytes,
            inside=self.inside and other.inside,
        )


def together(times: Iterable[OperatorTime]) -> list[OperatorTime]:
    """Operators of the same name and source as one, in the order in which they first come."""
    found: dict[tuple[str, str], OperatorTime] = {}
    for time in times:
        key = time.name, time.source
        found[key] = time if key not in found else found[key].joined(time)
    return list(found.values())
