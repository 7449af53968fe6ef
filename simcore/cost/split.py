"""How one forward pass is divided among the accelerators of a pipeline stage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simcore.core.batch_plan import BatchPlan
from simcore.cost.term import StepCounts
from simcore.models import MixtureOfExperts, ModelSpec


@dataclass(frozen=True, slots=True)
class Split:
    """``tensor`` devices share every matrix; ``data`` ranks of so many devices share the requests; experts lie on
    ``expert`` ranks.

    All devices together hold the experts: each has one of ``expert`` parts of them, and of every expert there one of
    ``expert_tensor`` parts. With one data-parallel rank all devices see all tokens, and results are summed as without
    expert parallelism (vLLM's ``enable_expert_parallel``); with several, tokens are sent to their experts and back.
    ``load`` is how many tokens the fullest expert rank gets for one of an even deal. All that is there ``context``
    times: each has an equal part of every prompt and of the KV cache.
    """

    tensor: int = 1
    data: int = 1
    expert: int = 1
    load: float = 1.0
    context: int = 1

    @property
    def devices(self) -> int:
        """Accelerators of a stage, of one context rank."""
        return self.tensor * self.data

    @property
    def expert_tensor(self) -> int:
        """Ranks that share the matrices of an expert."""
        return self.devices // self.expert

    def own_tokens(self, tokens: int) -> int:
        """Tokens of the fullest data-parallel rank, requests dealt out evenly."""
        return -(-tokens // self.data)

    def fullest_tokens(self, chunks: Iterable[tuple[int, int]], decoding: int) -> int:
        """Tokens of the data-parallel rank that has most, of chunks of (tokens, tokens computed before) and decodes."""
        if self.data == 1:
            return decoding + sum(tokens for tokens, _ in chunks)
        dealt = deal(chunks, self.data)
        return self.own_tokens(decoding) + max(sum(tokens for tokens, _ in own) for own in dealt)

    def counts(self, decoding: int, chunks: Sequence[tuple[int, int]], rows: int) -> StepCounts:
        """What a step of decodes and of chunks has, of which ``rows`` are sampled."""
        prefill_tokens, requests = sum(tokens for tokens, _ in chunks), decoding + len(chunks)
        if self.data > 1:
            own_tokens = self.fullest_tokens(chunks, decoding)
            return StepCounts(decoding + prefill_tokens, own_tokens, self.own_tokens(rows), decoding, requests)
        tokens = decoding + -(-prefill_tokens // self.context)
        return StepCounts(tokens, tokens, rows, decoding, requests)

    def counts_of(self, plan: BatchPlan, rows: int) -> StepCounts:
        """The same of a plan that is not decode alone."""
        decoding, chunks = plan.decoding, plan.chunks
        if self.data > 1:
            return self.counts(decoding, [(tokens, computed) for _, tokens, computed in chunks], rows)
        tokens = decoding + -(-plan.prefill_tokens // self.context)
        return StepCounts(tokens, tokens, rows, decoding, decoding + len(chunks))

    def counts_of_decodes(self, decoding: int) -> StepCounts:
        """The same of so many decodes alone."""
        own_tokens = self.own_tokens(decoding)
        return StepCounts(decoding, own_tokens, own_tokens, decoding, decoding)

    def ranks_reached(self, experts_per_token: int) -> float:
        """On how many expert ranks a token has experts, each rank drawn alike: n (1 - (1 - 1/n)^k)."""
        return self.expert * (1 - (1 - 1 / self.expert) ** experts_per_token)


def busiest_load(weights: tuple[float, ...], parts: int) -> float:
    """The share of tokens that the fullest of ``parts`` ranks gets, over an even one; experts lie in order on ranks.

    ``weights`` are how often each expert is chosen, in any unit.
    """
    held = len(weights) // parts
    loads = [sum(weights[place : place + held]) for place in range(0, len(weights), held)]
    return max(loads) * parts / sum(weights)


def deal(chunks: Iterable[tuple[int, int]], ranks: int) -> list[list[tuple[int, int]]]:
    """Chunks of (tokens, tokens computed before) dealt out, the longest first, to whichever rank has fewest tokens.

    A balanced deal of requests that are whole on one data-parallel rank (Graham's LPT rule, SIAM J. Appl. Math. 1969).
    """
    dealt: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
    for chunk in sorted(chunks, reverse=True):
        min(dealt, key=lambda own: sum(tokens for tokens, _ in own)).append(chunk)
    return dealt


def moe_layers(spec: ModelSpec) -> int:
    """Layers that have experts."""
    return sum(group.count for group in spec.layer_groups if isinstance(group.feed_forward, MixtureOfExperts))
