"""Linear attention of one kind of layers, compiled once per scenario: prompt chunks, and decodes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from simcore.core.clock import NS_PER_S
from simcore.cost.breakdown import OperatorTime, StepShape
from simcore.cost.calibrated import LinearAttentionPrice, Source
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.linear_attention import LinearAttentionWork
from simcore.cost.roofline import Roofline
from simcore.cost.split import deal
from simcore.engines import LaunchCounts


@dataclass(frozen=True, slots=True)
class CompiledLinearAttention:
    """Linear attention of the layers alike, all of them together, in nanoseconds.

    What was not ``measured`` takes the longest of its arithmetic, its memory traffic and the floor of its launches.
    Requests are dealt out to so many ``data_ranks``, of which the fullest is priced.
    """

    work: LinearAttentionWork
    measured: LinearAttentionPrice | None
    roofline: Roofline
    launches: LaunchCounts
    data_ranks: int = 1

    @property
    def source(self) -> Source:
        """Where the prices come from."""
        return Source.ROOFLINE if self.measured is None else self.measured.source

    def chunks_ns(self, chunks: Iterable[tuple[int, int]]) -> float:
        """Chunks of (tokens, tokens computed before), which do not matter: a state stands for them."""
        return max(self._own_chunks_ns(own) for own in deal(chunks, self.data_ranks))

    def decodes_ns(self, decoding: int) -> float:
        """So many requests of one token each."""
        own = -(-decoding // self.data_ranks)
        if not own:
            return 0.0
        if self.measured is None:
            seconds = self._roofline_s(own, own, self.launches.linear_attention_decode)
        else:
            seconds = self.measured.decodes_seconds(own)
        return self.work.count * NS_PER_S * seconds

    def inside(self, chunks: Iterable[tuple[int, int]]) -> bool:
        """Whether chunks of each rank were measured."""
        if self.measured is None:
            return False
        dealt = (own for own in deal(chunks, self.data_ranks) if own)
        return all(self.measured.inside_launch([tokens for tokens, _ in own]) for own in dealt)

    def inside_decodes(self, decoding: int) -> bool:
        """Whether so many decodes were measured."""
        return self.measured is not None and self.measured.inside_decodes(-(-decoding // self.data_ranks))

    def flops(self, tokens: int) -> float:
        """Operations of all layers on one data-parallel rank of even share."""
        return self.work.count * self.work.flops(tokens) / self.data_ranks

    def bytes(self, tokens: int, requests: int) -> float:
        """Bytes of all layers on one data-parallel rank of even share."""
        return self.work.count * self.work.bytes(tokens, requests) / self.data_ranks

    def times(self, shape: StepShape) -> Iterator[OperatorTime]:
        """What a step takes of chunks and of decodes."""
        for name, taken_ns, tokens, requests, inside in (
            (
                "prefill_linear_attention",
                self.chunks_ns(shape.chunks),
                shape.tokens - shape.decodes,
                len(shape.chunks),
                self.inside(shape.chunks),
            ),
            (
                "decode_linear_attention",
                self.decodes_ns(shape.decodes),
                shape.decodes,
                shape.decodes,
                self.inside_decodes(shape.decodes),
            ),
        ):
            if requests:
                yield OperatorTime(
                    name,
                    self.work.count,
                    taken_ns / NS_PER_S,
                    self.flops(tokens),
                    self.bytes(tokens, requests),
                    str(self.source),
                    inside,
                    None if self.measured is None else self.measured.errors,
                )

    def _own_chunks_ns(self, chunks: list[tuple[int, int]]) -> float:
        if not chunks:
            return 0.0
        lengths = [tokens for tokens, _ in chunks]
        if self.measured is None:
            seconds = self._roofline_s(sum(lengths), len(lengths), self.launches.linear_attention_prompt)
        else:
            seconds = self.measured.launch_seconds(lengths)
        return self.work.count * NS_PER_S * seconds

    def _roofline_s(self, tokens: int, requests: int, launches: int) -> float:
        compute_s = self.roofline.attention_compute_s(self.work.flops(tokens))
        memory_s = self.roofline.attention_memory_s(self.work.bytes(tokens, requests))
        return max(compute_s, memory_s, self.roofline.floors_s(launches))


def compile_linear_attention(
    work: LinearAttentionWork, prices: KernelPrices, data_ranks: int
) -> CompiledLinearAttention:
    """The linear attention of the layers of ``work`` at such prices."""
    measured = prices.linear_attention(work)
    return CompiledLinearAttention(work, measured, prices.roofline, prices.engine.launches, data_ranks)
