"""Ring attention: the sequence of a prompt divided among ranks, which pass on its keys and values.

Each rank holds an equal part of queries and of keys and values; in as many rounds as ranks it attends to the part at
hand while that part is sent to the next rank (Liu, Zaharia & Abbeel, "Ring Attention with Blockwise Transformers",
arXiv:2310.01889, section 3). A round takes the longer of the two. Tokens lie striped, so that the causal mask leaves
all ranks alike to do (Brandon et al., "Striped Attention", arXiv:2311.09431). In a decode each rank attends to its part
of every context, and what comes of that is gathered by all and put together by the sums of exponentials.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from simcore.core.clock import NS_PER_S
from simcore.cost.attention import AttentionWork
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.prices import Price
from simcore.cost.roofline import read_context
from simcore.cost.split import Split
from simcore.cost.term import Counted, Term


@dataclass(frozen=True, slots=True)
class Ring:
    """The ring of ``ranks`` that attention of ``layers`` layers goes around; ``send`` prices bytes to the next rank."""

    ranks: int
    layers: int
    send: Price

    def rounds_ns(self, alone_ns: float, part_bytes: float) -> float:
        """All rounds of all layers, of attention that takes one rank ``alone_ns`` over all of them.

        ``part_bytes`` are keys and values that one rank holds of one layer.
        """
        computing_ns = alone_ns / self.ranks**2
        sending_ns = self.layers * self.send.seconds(round(part_bytes)) * NS_PER_S
        return self.ranks * max(computing_ns, sending_ns)

    def part_bytes(
        self, chunks: Iterable[tuple[int, int]], window_tokens: int | None, kv_bytes_per_token: float
    ) -> float:
        """Of the context of chunks of (tokens, tokens computed before), what one rank holds of one layer."""
        context = sum(read_context(computed, tokens, window_tokens) for tokens, computed in chunks)
        return context * kv_bytes_per_token / self.ranks


def context_merge(prices: KernelPrices, split: Split, attention: Iterable[AttentionWork]) -> Iterator[Term]:
    """What context ranks gather in each decode, where there are several. A part is about as many bytes as a query."""
    if split.context == 1:
        return
    works = list(attention)
    layers = sum(work.count for work in works)
    token_bytes = sum(work.count * work.query_bytes_per_token / 2 for work in works) / layers
    topology = prices.links.topology(split.context * split.devices)
    price = prices.collective("all_gather", split.context, topology)
    yield Term.message("context_merge", layers, price, token_bytes * split.context, Counted.DECODING)


def ring_of(prices: KernelPrices, ranks: int, neighbours: int, layers: int) -> Ring | None:
    """The ring of so many ranks, each ``neighbours`` accelerators from the next; None where there is one rank."""
    if ranks == 1:
        return None
    return Ring(ranks, layers, prices.collective("send_recv", 2, prices.links.topology(ranks * neighbours)))
