"""Tokens on their way to experts and back, where data groups share experts; requests dealt out to these groups; and
logits brought together."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.prices import Price
from simcore.cost.split import Split
from simcore.models import MixtureOfExperts, ModelSpec
from simcore.models.weight_formats import ACTIVATION_BYTES


@dataclass(frozen=True, slots=True)
class ExpertExchange:
    """The two all-to-alls of ``count`` layers with experts: dispatch, and combine on the way back.

    A token goes once to each of ``reached`` ranks, on the mean, that have experts of its own (DeepSeek-V3,
    arXiv:2412.19437, section 3.2; its bound on nodes is not counted). Both ways it has 16 bits a number: engines may
    dispatch in fp8.
    """

    price: Price
    count: int
    reached: float
    token_bytes: int
    load: float

    def dispatched_bytes(self, own_tokens: int) -> int:
        """What the fullest rank sends or gets, for so many tokens of each group."""
        return ceil(own_tokens * self.reached * self.token_bytes * self.load)

    def combined_bytes(self, own_tokens: int) -> int:
        """The same on the way back."""
        return self.dispatched_bytes(own_tokens)

    def seconds(self, own_tokens: int) -> float:
        """All layers' exchanges."""
        both = self.price.seconds(self.dispatched_bytes(own_tokens)) + self.price.seconds(
            self.combined_bytes(own_tokens)
        )
        return self.count * both


def expert_exchange(spec: ModelSpec, prices: KernelPrices, split: Split, layers: int) -> ExpertExchange | None:
    """What ``layers`` layers with experts exchange; None where nothing is.

    Of a group's tokens each of its tensor-parallel ranks sends a share.
    """
    if not layers:
        return None
    blocks = [group.feed_forward for group in spec.layer_groups]
    experts_per_token = max(block.experts_per_token for block in blocks if isinstance(block, MixtureOfExperts))
    price = prices.collective("all_to_all", split.devices)
    token_bytes = ceil(spec.hidden_size * ACTIVATION_BYTES / split.tensor)
    return ExpertExchange(price, layers, split.ranks_reached(experts_per_token), token_bytes, split.load)


@dataclass(frozen=True, slots=True)
class LogitsGather:
    """Brings the logits of the sampled rows together, of which each tensor-parallel rank has a part of the vocabulary.

    So do vLLM and SGLang, on all ranks (vLLM, ``LogitsProcessor``; recalled).
    """

    price: Price
    row_bytes: int

    def gathered_bytes(self, rows: int) -> int:
        """What every rank then has."""
        return rows * self.row_bytes

    def seconds(self, rows: int) -> float:
        """All rows at once."""
        return self.price.seconds(self.gathered_bytes(rows))


def logits_gather(spec: ModelSpec, prices: KernelPrices, ranks: int) -> LogitsGather | None:
    """The gather among so many ranks; None for one."""
    if ranks == 1:
        return None
    return LogitsGather(prices.collective("all_gather", ranks), spec.vocabulary_size * int(ACTIVATION_BYTES))


def deal(chunks: Iterable[tuple[int, int]], groups: int) -> list[list[tuple[int, int]]]:
    """Chunks of (tokens, tokens computed before) dealt out, the longest first, to whichever group has fewest tokens.

    A balanced deal of requests that are whole on one group (Graham's LPT rule, SIAM J. Appl. Math. 1969).
    """
    dealt: list[list[tuple[int, int]]] = [[] for _ in range(groups)]
    for chunk in sorted(chunks, reverse=True):
        min(dealt, key=lambda own: sum(tokens for tokens, _ in own)).append(chunk)
    return dealt
