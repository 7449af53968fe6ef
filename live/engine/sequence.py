"""The tokens of a request: made up for a workload, or given by a caller and sampled."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from live.paging.step_batch import Ints
from live.sampling.parameters import SamplingParameters
from live.sampling.sampler import Row, Sampled
from live.text.detokeniser import Detokeniser
from simcore.core.content import Run
from simcore.core.request import Request

Deliver = Callable[[Sampled, str], None]
"""Takes a token as it is sampled, and the text that it makes certain."""

GREEDY = SamplingParameters(temperature=0.0)


class LiveSequence(ABC):
    """One output and the prompt before it, which has ``prompt_tokens`` tokens."""

    prompt_tokens: int

    @property
    @abstractmethod
    def output_tokens(self) -> int:
        """Tokens of the output so far."""

    @abstractmethod
    def between(self, first: int, end: int) -> Sequence[int] | Ints:
        """Tokens ``first`` to ``end`` - 1 of prompt and output."""

    @abstractmethod
    def row(self) -> Row:
        """How its next token is chosen."""

    @abstractmethod
    def add(self, sampled: Sampled) -> bool:
        """Take its next token; returns whether it is the last."""


@dataclass(slots=True)
class WorkloadSequence(LiveSequence):
    """A request of a workload: its tokens follow from its content, and its output is as long as the workload says.

    Tokens are sampled like any other's, since that takes its time, but the output goes on with those of the content.
    Only so are tokens equal wherever a workload says that they are, in the answers that later prompts repeat too.
    """

    tokens: NDArray[np.int64]
    prompt_tokens: int
    limit: int
    generated: int = 0

    @classmethod
    def of(cls, request: Request, output_tokens: int, vocabulary: int) -> "WorkloadSequence":
        """The sequence of a request that will generate so many tokens."""
        length = request.prompt_tokens + output_tokens
        content = request.content
        if content is None:
            own = int.from_bytes(blake2b(b"tokens %d" % request.number, digest_size=7).digest(), "big")
            runs: Iterable[Run] = (Run(own, length),)
        else:
            runs = (*content.prompt, *content.output, Run(content.output_first, output_tokens))
        return cls(made_up_tokens(runs, vocabulary)[:length], request.prompt_tokens, output_tokens)

    def between(self, first: int, end: int) -> Ints:
        """See ``LiveSequence``."""
        return self.tokens[first:end]

    @property
    def output_tokens(self) -> int:
        """See ``LiveSequence``."""
        return self.generated

    def row(self) -> Row:
        """See ``LiveSequence``."""
        return Row(GREEDY, self.prompt_tokens + self.generated)

    def add(self, sampled: Sampled) -> bool:
        """See ``LiveSequence``."""
        self.generated += 1
        return self.generated == self.limit


@dataclass(slots=True)
class CallersSequence(LiveSequence):
    """A request of a caller, who is given each token as it comes.

    It ends with one of ``end_tokens``, a stop string, or ``limit`` tokens; ``finish_reason`` says by which. ``branch``
    numbers the outputs of one request.
    """

    tokens: list[int]
    prompt_tokens: int
    limit: int
    parameters: SamplingParameters
    deliver: Deliver
    end_tokens: frozenset[int] = frozenset()
    branch: int = 0
    text: Detokeniser | None = None
    finish_reason: str = ""
    siblings: list["Sibling"] = field(default_factory=list)

    @property
    def output_tokens(self) -> int:
        """See ``LiveSequence``."""
        return len(self.tokens) - self.prompt_tokens

    def between(self, first: int, end: int) -> Sequence[int]:
        """See ``LiveSequence``."""
        return self.tokens[first:end]

    def row(self) -> Row:
        """See ``LiveSequence``."""
        return Row(self.parameters, len(self.tokens), self.branch)

    def add(self, sampled: Sampled) -> bool:
        """See ``LiveSequence``."""
        self.tokens.append(sampled.token)
        ended = sampled.token in self.end_tokens
        text = "" if self.text is None or ended else self.text.add(sampled.token)
        if ended or (self.text is not None and self.text.stopped):
            self.finish_reason = "stop"
        elif self.output_tokens == self.limit:
            self.finish_reason = "length"
        if self.finish_reason and self.text is not None:
            text += self.text.finish()
        self.deliver(sampled, text)
        return bool(self.finish_reason)


@dataclass(frozen=True, slots=True)
class Sibling:
    """A further output of a request, which goes on from where the first has its prompt computed."""

    request: Request
    sequence: CallersSequence


def made_up_tokens(runs: Iterable[Run], vocabulary: int) -> NDArray[np.int64]:
    """A token for each identity of a content, equal ones for equal identities, below ``vocabulary``.

    Identities are mixed by the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), so that successive ones
    are not successive tokens.
    """
    parts = [np.arange(run.first, run.first + run.tokens, dtype=np.uint64) for run in runs]
    mixed = np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed % np.uint64(vocabulary)).astype(np.int64)
