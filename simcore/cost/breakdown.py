"""Where the time of one step goes, operator by operator, with the source of each price."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from simcore.core.bounds import MOST_DIGITS
from simcore.core.clock import NS_PER_S
from simcore.core.errors import InputError
from simcore.cost.attention import AttentionWork
from simcore.cost.calibrated import Source
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.compiled_attention import CompiledAttention, attended_tokens
from simcore.cost.compiled_linear_attention import CompiledLinearAttention
from simcore.cost.exchange import deal
from simcore.cost.operators import Operator
from simcore.cost.pipeline import TENSORS_SENT, PipelineCost
from simcore.cost.price_shares import HOST
from simcore.cost.prices import Price
from simcore.cost.roofline import attended_pairs, read_context
from simcore.cost.step_cost import StepCost

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


def breakdown(cost: StepCost, shape: StepShape) -> list[OperatorTime]:
    """The operators of a step in the order in which a layer runs them, the head and the host last.

    Their seconds add up to what the simulator takes for such a step. ``launching`` is what launching kernels takes
    beyond their own time, where that bounds a step; its count is of all launches. ``waiting`` is for the host in layers
    of linear attention.
    """
    tokens = cost.split.step_tokens(shape.decodes, shape.tokens - shape.decodes)
    own_tokens = tokens
    if cost.split.data > 1:
        own_tokens = cost.fullest_group_tokens(shape.chunks, shape.decodes)
    times = [
        _operator(operator, price, cost.seen_tokens(operator, tokens, own_tokens))
        for operator, price in zip(cost.layers, cost.layer_prices, strict=True)
    ]
    for kind in cost.compiled_attention:
        times += _attention(kind, shape)
    for linear in cost.linear_attention:
        times += _linear_attention(linear, shape)
    for all_reduce in cost.all_reduces:
        price, moved = cost.all_reduce_price, own_tokens * all_reduce.bytes_per_token
        seconds = all_reduce.count * price.seconds(moved)
        times.append(_time(all_reduce.name, all_reduce.count, seconds, 0.0, 0.0, price, moved))
    if cost.merge is not None and shape.decodes:
        merge, moved = cost.merge, cost.merge.gathered_bytes(shape.decodes)
        times.append(_time("context_merge", merge.layers, merge.seconds(shape.decodes), 0.0, 0.0, merge.price, moved))
    if cost.exchange is not None:
        exchange = cost.exchange
        for name, moved in (
            ("expert_dispatch", exchange.dispatched_bytes(own_tokens)),
            ("expert_combine", exchange.combined_bytes(own_tokens)),
        ):
            seconds = exchange.count * exchange.price.seconds(moved)
            times.append(_time(name, exchange.count, seconds, 0.0, 0.0, exchange.price, moved))
    own_rows = cost.split.own_tokens(shape.requests)
    times += [_operator(operator, price, own_rows) for operator, price in zip(cost.head, cost.head_prices, strict=True)]
    if cost.logits_gather is not None:
        gather, moved = cost.logits_gather, cost.logits_gather.gathered_bytes(own_rows)
        times.append(_time("logits_gather", 1, gather.seconds(own_rows), 0.0, 0.0, gather.price, moved))
    launching_ns = cost.launching_ns(tokens, shape.requests, shape.requests)
    if launching_ns:
        times.append(OperatorTime("launching", cost.launches, launching_ns / NS_PER_S, 0.0, 0.0, HOST, False))
    waiting_ns = cost.waiting_ns(tokens, shape.requests)
    if waiting_ns:
        layers = sum(linear.work.count for linear in cost.linear_attention)
        times.append(OperatorTime("waiting", layers, waiting_ns / NS_PER_S, 0.0, 0.0, HOST, False))
    between_ns = cost.between_steps_ns(shape.requests)
    times.append(OperatorTime("host", 1, between_ns / NS_PER_S, 0.0, 0.0, HOST, False))
    return times


def together(times: Iterable[OperatorTime]) -> list[OperatorTime]:
    """Operators of the same name and source as one, in the order in which they first come."""
    found: dict[tuple[str, str], OperatorTime] = {}
    for time in times:
        key = time.name, time.source
        found[key] = time if key not in found else found[key].joined(time)
    return list(found.values())


def between_stages(cost: PipelineCost, shape: StepShape) -> list[OperatorTime]:
    """What all stages of a pipeline send on and gather, in the order of the stages."""
    times: list[OperatorTime] = []
    tokens = cost.sent_tokens(shape.chunks, shape.decodes)
    for hop in cost.hops:
        sent, gathered = hop.sent_bytes(tokens), hop.gathered_bytes(tokens)
        times.append(_time("stage_send_recv", TENSORS_SENT, hop.send_s(tokens), 0.0, 0.0, hop.send, sent))
        if hop.gather is not None:
            seconds = hop.gather_s(tokens)
            times.append(_time("stage_all_gather", TENSORS_SENT, seconds, 0.0, 0.0, hop.gather, gathered))
    return times


def _operator(operator: Operator, price: Price, tokens: int) -> OperatorTime:
    count = operator.count
    flops, moved = count * operator.flops(tokens), count * operator.bytes(tokens)
    return _time(operator.name, count, count * price.seconds(tokens), flops, moved, price, tokens)


def _time(name: str, count: int, seconds: float, flops: float, moved: float, price: Price, x: int) -> OperatorTime:
    return OperatorTime(name, count, seconds, flops, moved, str(price.source), price.inside(x), price.errors_at(x))


def _attention(kind: CompiledAttention, shape: StepShape) -> Iterator[OperatorTime]:
    work, window = kind.work, kind.work.window_tokens
    spread = 1 if kind.ring is None else kind.ring.ranks
    suffix = "" if window is None else f"_window_{window}"
    if shape.chunks:
        context = kind.calibrated.context
        chunks = max(deal(shape.chunks, kind.groups), key=lambda own: sum(tokens for tokens, _ in own))
        yield OperatorTime(
            f"{'prefill' if kind.ring is None else 'ring'}_attention{suffix}",
            work.count,
            kind.chunks_ns(shape.chunks, beside_decodes=shape.decodes > 0) / NS_PER_S,
            work.count * work.flops_per_pair * sum(attended_pairs(done, new, window) for new, done in chunks) / spread,
            work.count * sum(_chunk_bytes(work, new, done) for new, done in chunks) / spread,
            str(Source.ROOFLINE if context is None else context.source),
            context is not None and all(context.inside(new, done) for new, done in shape.chunks),
            None if context is None else context.errors,
        )
    if shape.decodes:
        read = shape.decodes * attended_tokens(shape.context_tokens, window)
        generation = kind.decode_price(beside_chunks=bool(shape.chunks))
        yield OperatorTime(
            f"decode_attention{suffix}",
            work.count,
            kind.decodes_ns(shape.decodes, read, beside_chunks=bool(shape.chunks)) / NS_PER_S,
            work.count * work.decode_flops_per_pair * read / kind.parts,
            work.count
            * (work.kv_bytes_per_token * read / kind.parts + work.query_bytes_per_token * shape.decodes / kind.groups),
            str(Source.ROOFLINE if generation is None else generation.source),
            generation is not None and generation.inside(shape.decodes, read),
            None if generation is None else generation.errors,
        )


def _linear_attention(kind: CompiledLinearAttention, shape: StepShape) -> Iterator[OperatorTime]:
    work, errors = kind.work, None if kind.measured is None else kind.measured.errors
    tokens = shape.tokens - shape.decodes
    for name, nanoseconds, own_tokens, requests, inside in (
        ("prefill", kind.chunks_ns(shape.chunks), tokens, len(shape.chunks), kind.inside(shape.chunks)),
        ("decode", kind.decodes_ns(shape.decodes), shape.decodes, shape.decodes, kind.inside_decodes(shape.decodes)),
    ):
        if requests:
            flops, moved = work.flops(own_tokens), work.bytes(own_tokens, requests)
            spread = work.count / kind.groups
            yield OperatorTime(
                f"{name}_linear_attention",
                work.count,
                nanoseconds / NS_PER_S,
                spread * flops,
                spread * moved,
                str(kind.source),
                inside,
                errors,
            )


def _chunk_bytes(work: AttentionWork, tokens: int, computed_tokens: int) -> float:
    context = read_context(computed_tokens, tokens, work.window_tokens)
    return work.kv_bytes_per_token * context + work.query_bytes_per_token * tokens
