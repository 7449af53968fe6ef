"""Attention of one kind of layers, compiled once per scenario: prompt chunks, and decodes over their context."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from simcore.core.clock import NS_PER_S
from simcore.cost.attention import AttentionWork
from simcore.cost.breakdown import OperatorTime, StepShape
from simcore.cost.calibrated import Curve, GenerationPrice, Source
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.prices import AttentionPrices
from simcore.cost.ring import Ring, ring_of
from simcore.cost.roofline import attended_pairs, read_context
from simcore.cost.split import Split, deal


@dataclass(frozen=True, slots=True)
class CompiledAttention:
    """Attention of the layers alike, all of them together, in nanoseconds.

    It takes the longest of reading the context, computing with it, and the floor of its launches. ``prices`` are the
    time to read a context token, the time to compute with one in a decode, that floor, and the time to read that each
    query adds; a pair of query and context token in a prefill takes ``prefill_pair_ns`` to compute. ``window`` is which
    of the pool's windows it reads, None for the whole context. What ``calibrated`` prices is priced by that instead,
    ``scale`` times. Requests are dealt out to so many ``data_ranks``: ``prices`` are those of one rank over tokens of
    all. Where there is a ``ring``, each of its ranks has a part of every context.
    """

    work: AttentionWork
    window: int | None
    prices: tuple[float, float, float, float]
    prefill_pair_ns: float
    calibrated: AttentionPrices
    scale: float
    data_ranks: int = 1
    ring: Ring | None = None

    def chunks_ns(self, chunks: Iterable[tuple[int, int]], beside_decodes: bool) -> float:
        """Chunks of (tokens, tokens computed before); beside decodes measured with a chunk, less a chunk's floor."""
        if self.data_ranks > 1:
            dealt = deal(chunks, self.data_ranks)
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
        return self.data_ranks if self.ring is None else self.ring.ranks

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
            moved_ns = context * memory * self.parts + tokens * query * self.data_ranks
            total += max(pairs * self.prefill_pair_ns, moved_ns, floor)
        return total

    @property
    def chunks_source(self) -> Source:
        """Where the price of chunks comes from."""
        context = self.calibrated.context
        return Source.ROOFLINE if context is None else context.source

    def decodes_source(self, beside_chunks: bool) -> Source:
        """Where the price of decodes comes from."""
        generation = self.decode_price(beside_chunks)
        return Source.ROOFLINE if generation is None else generation.source

    def flops(self, decode_tokens: int, prefill_pairs: int) -> float:
        """Operations of all layers on one rank, for context that decodes read and pairs of prompts.

        Undivided among data-parallel ranks.
        """
        work, spread = self.work, 1 if self.ring is None else self.ring.ranks
        attention = decode_tokens * work.decode_flops_per_pair + prefill_pairs * work.flops_per_pair
        return work.count * attention / spread

    def bytes(self, context_tokens: int, decoded: int, prefilled: int) -> float:
        """Bytes of all layers on one rank, for context read and for queries of decodes and of prompts."""
        work, spread = self.work, 1 if self.ring is None else self.ring.ranks
        read = work.kv_bytes_per_token * context_tokens / spread
        return work.count * (read + work.query_bytes_per_token * (decoded + prefilled / spread))

    def times(self, shape: StepShape) -> Iterator[OperatorTime]:
        """What a step takes: of its chunks on the fullest data-parallel rank, of its decodes on an even one."""
        window = self.work.window_tokens
        suffix = "" if window is None else f"_window_{window}"
        if shape.chunks:
            context = self.calibrated.context
            own = max(deal(shape.chunks, self.data_ranks), key=lambda dealt: sum(tokens for tokens, _ in dealt))
            pairs = sum(attended_pairs(computed, tokens, window) for tokens, computed in own)
            read = sum(read_context(computed, tokens, window) for tokens, computed in own)
            yield OperatorTime(
                f"{'prefill' if self.ring is None else 'ring'}_attention{suffix}",
                self.work.count,
                self.chunks_ns(shape.chunks, beside_decodes=shape.decodes > 0) / NS_PER_S,
                self.flops(0, pairs),
                self.bytes(read, 0, sum(tokens for tokens, _ in own)),
                str(self.chunks_source),
                context is not None and all(context.inside(new, done) for new, done in shape.chunks),
                None if context is None else context.errors,
            )
        if shape.decodes:
            beside = bool(shape.chunks)
            read = shape.decodes * attended_tokens(shape.context_tokens, window)
            generation = self.decode_price(beside)
            yield OperatorTime(
                f"decode_attention{suffix}",
                self.work.count,
                self.decodes_ns(shape.decodes, read, beside) / NS_PER_S,
                self.flops(read, 0) / self.data_ranks,
                self.bytes(read, shape.decodes, 0) / self.data_ranks,
                str(self.decodes_source(beside)),
                generation is not None and generation.inside(shape.decodes, read),
                None if generation is None else generation.errors,
            )

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
    scale, data_ranks, spread = work.count * NS_PER_S, split.data, split.context
    return CompiledAttention(
        work,
        window=None if work.window_tokens is None else window_tokens.index(work.window_tokens),
        prices=(
            scale * roofline.attention_memory_s(work.kv_bytes_per_token) / (data_ranks * spread),
            scale * roofline.attention_compute_s(work.decode_flops_per_pair) / (data_ranks * spread),
            scale * roofline.floors_s(work.launches),
            scale * roofline.attention_memory_s(work.query_bytes_per_token) / data_ranks,
        ),
        prefill_pair_ns=scale * roofline.attention_compute_s(work.flops_per_pair),
        calibrated=prices.attention(work).over_ranks(data_ranks, spread),
        scale=scale,
        data_ranks=data_ranks,
        ring=ring_of(prices, spread, split.devices, work.count),
    )


def attended_tokens(context_tokens: int, window_tokens: int | None) -> int:
    """Tokens that the next decode step of a request reads."""
    read = context_tokens + 1
    return read if window_tokens is None else min(read, window_tokens)
