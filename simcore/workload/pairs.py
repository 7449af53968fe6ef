"""The prompt and output lengths of one request, drawn together: independent, correlated or taken from a file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from simcore.workload.batch import Int64Array
from simcore.workload.lengths import LengthDistribution
from simcore.workload.normal import normal_cdf
from simcore.workload.streams import random_stream

Draw = Callable[[int], tuple[Int64Array, Int64Array]]
"""Given a number of requests, their prompt and output lengths; successive calls continue the same sequence."""


class LengthPairs(Protocol):
    """Where the lengths of requests come from, and in ``notices`` what a user should know of that."""

    @property
    def notices(self) -> tuple[str, ...]:
        """One sentence each."""

    def start(self, seed: int) -> Draw:
        """The sequence of lengths that belongs to ``seed``, from its beginning."""


@dataclass(frozen=True, slots=True)
class IndependentPairs:
    """Prompt and output lengths that know nothing of each other."""

    prompt: LengthDistribution
    output: LengthDistribution

    notices: ClassVar[tuple[str, ...]] = ()

    def start(self, seed: int) -> Draw:
        """Draws from one stream for prompts and another for outputs, so that either can change alone."""
        prompt_random = random_stream(seed, "prompt_tokens")
        output_random = random_stream(seed, "output_tokens")

        def draw(count: int) -> tuple[Int64Array, Int64Array]:
            prompts = self.prompt.quantile(prompt_random.random(count))
            return prompts, self.output.quantile(output_random.random(count))

        return draw


@dataclass(frozen=True, slots=True)
class CorrelatedPairs:
    """Lengths joined by a Gaussian copula: each keeps its own distribution, ``rank_correlation`` ties the two.

    ``rank_correlation`` is Spearman's, -1 to 1. The normal correlation that gives it is 2 sin(π r / 6) (Kruskal 1958,
    "Ordinal measures of association"); exact but for ties among whole numbers.
    """

    prompt: LengthDistribution
    output: LengthDistribution
    rank_correlation: float

    notices: ClassVar[tuple[str, ...]] = ()

    def start(self, seed: int) -> Draw:
        """Draws two normals a request."""
        random = random_stream(seed, "lengths")
        correlation = 2.0 * np.sin(np.pi * self.rank_correlation / 6.0)
        independent = np.sqrt(max(0.0, 1.0 - correlation**2))

        def draw(count: int) -> tuple[Int64Array, Int64Array]:
            normals = random.standard_normal((count, 2))
            tied = correlation * normals[:, 0] + independent * normals[:, 1]
            return self.prompt.quantile(normal_cdf(normals[:, 0])), self.output.quantile(normal_cdf(tied))

        return draw


@dataclass(frozen=True, slots=True)
class EmpiricalPairs:
    """Pairs of a measured set, drawn with replacement; prompt and output of one request stay together."""

    prompt_tokens: Int64Array
    output_tokens: Int64Array
    notices: tuple[str, ...] = ()

    def start(self, seed: int) -> Draw:
        """Draws the position of each pair."""
        random = random_stream(seed, "lengths")

        def draw(count: int) -> tuple[Int64Array, Int64Array]:
            chosen = random.integers(len(self.prompt_tokens), size=count)
            return self.prompt_tokens[chosen], self.output_tokens[chosen]

        return draw


@dataclass(frozen=True, slots=True, eq=False)
class ListedPairs:
    """Pairs in the order of a list, which begins again when it ends; nothing is random."""

    prompt_tokens: Int64Array
    output_tokens: Int64Array
    notices: tuple[str, ...] = ()

    def start(self, seed: int) -> Draw:
        """The list from its beginning."""
        place = 0

        def draw(count: int) -> tuple[Int64Array, Int64Array]:
            nonlocal place
            places = np.arange(place, place + count) % len(self.prompt_tokens)
            place += count
            return self.prompt_tokens[places], self.output_tokens[places]

        return draw
