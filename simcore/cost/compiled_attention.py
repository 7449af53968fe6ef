"""Attention of one kind of layers, compiled once per scenario: prompt chunks, and decodes over their context."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simcore.core.clock import NS_PER_S
from simcore.cost.attention import AttentionWork
from simcore.cost.calibrated import Curve, GenerationPrice
from simcore.cost.exchange import deal
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.prices import AttentionPrices
from simcore.cost.ring import Ring, ring_of
from simcore.cost.roofline import attended_pairs, read_context
from simcore.cost.split import Split


@dataclass(frozen=True, slots=True)
class CompiledAttention:
    """Attention of the layers alike, all of them together, in nanoseconds.

    It takes the longest of reading the context, computing with it, and a floor. ``prices`` are the time to read a
    context token, the time to compute with one in a decode, the floor, and the time to read that each query adds; a
    pair of query and context token in a prefill takes ``prefill_pair_ns`` to compute. ``window`` is which of the pool's
    windows it reads, None for the whole context. What ``calibrated`` prices is priced by that instead, ``scale`` times.
    Requests are dealt out to ``groups`` of ranks: ``prices`` are those of one group over tokens of all. Where there is
    a ``ring``, each of its ranks has a part of every context.
    """

    work: AttentionWork
    window: int | None
    prices: tuple[float, float, float, float]
    prefill_pair_ns: float
    calibrated: AttentionPrices
    scale: float
    groups: int = 1
    ring: Ring | None = None

    def chunks_ns(self, chunks: Iterable[tuple[int, int]], beside_decodes: bool) -> float:
        """Chunks of (tokens, tokens computed before); beside decodes measured with a chunk, less a chunk's floor."""
        if self.groups > 1:
            dealt = deal(chunks, self.groups)
            return max(self._own_chunks_ns(own, beside_decodes) for own in dealt)
        if self.ring is not None:
            chunks = list(chunks)
            work = self.work
            part_bytes = self.ring.part_bytes(chunks, work.window_tokens, work.kv_bytes_per_token)
            return self.ring.rounds_ns(self._own_chunks_ns(chunks, beside_decodes), part_bytes)
        return self._own_chunks_ns(chunks, beside_decodes)

    @property
    def parts(self) -> int:
        """Into how many parts the context of all requests is divided."""
        return self.groups if self.ring is None else self.ring.ranks

    def _own_chunks_ns(self, chunks: Iterable[tuple[int, int]], beside_decodes: bool) -> float:
        calibrated = self.calibrated
        if calibrated.context is not None:
            seconds = calibrated.context.step_s(list(chunks))
            if beside_decodes and calibrated.mixed is not None:
                seconds = max(seconds - calibrated.context.curves[0].at(0), 0.0)
            return self.scale * seconds
        total = 0.0
        window_tokens = self.work.window_tokens
        memory, _, floor, query = self.prices
        for tokens, computed_tokens in chunks:
            pairs = attended_pairs(computed_tokens, tokens, window_tokens)
            context = read_context(computed_tokens, tokens, window_tokens)
            moved_ns = context * memory * self.parts + tokens * query * self.groups
            total += max(pairs * self.prefill_pair_ns, moved_ns, floor)
        return total

    def decodes_ns(self, decoding: int, context: int, beside_chunks: bool) -> float:
        """``decoding`` requests that read ``context`` tokens together, new ones included."""
        curve = self.decode_curve(decoding, beside_chunks)
        if curve is not None:
            return curve.at(context)
        memory, compute, floor, per_query = self.prices
        return max(context * memory + decoding * per_query, context * compute, floor)

    def decode_curve(self, decoding: int, beside_chunks: bool) -> Curve | None:
        """Attention of so many requests over their context in total; None where the roofline must do."""
        price = self.decode_price(beside_chunks)
        return None if price is None else price.over_total_context(decoding).curve.scaled(self.scale)

    def decode_price(self, beside_chunks: bool) -> GenerationPrice | None:
        """The calibrated price of decodes, alone or beside chunks; None where the roofline must do."""
        calibrated = self.calibrated
        return (calibrated.mixed if beside_chunks else None) or calibrated.generation


def compile_attention(
    work: AttentionWork, prices: KernelPrices, split: Split, window_tokens: Sequence[int]
) -> CompiledAttention:
    """The attention of the layers of ``work``; ``window_tokens`` are the windows of the whole model, ascending."""
    roofline = prices.roofline
    scale, groups, spread = work.count * NS_PER_S, split.data, split.context
    return CompiledAttention(
        work,
        window=None if work.window_tokens is None else window_tokens.index(work.window_tokens),
        prices=(
            scale * roofline.attention_memory_s(work.kv_bytes_per_token) / (groups * spread),
            scale * roofline.attention_compute_s(work.decode_flops_per_pair) / (groups * spread),
            scale * roofline.efficiency.kernel_floor_s,
            scale * roofline.attention_memory_s(work.query_bytes_per_token) / groups,
        ),
        prefill_pair_ns=scale * roofline.attention_compute_s(work.flops_per_pair),
        calibrated=prices.attention(work).over_ranks(groups, spread),
        scale=scale,
        groups=groups,
        ring=ring_of(prices, spread, split.devices, work.count),
    )


def attended_tokens(context_tokens: int, window_tokens: int | None) -> int:
    """Tokens that the next decode step of a request reads."""
    read = context_tokens + 1
    return read if window_tokens is None else min(read, window_tokens)
