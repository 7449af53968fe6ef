"""Pipeline parallelism: what each stage takes for a batch, and what passes from stage to stage.

Layers are split over stages (GPipe, Huang et al., arXiv:1811.06965), through which batches follow one another, one in
each stage (Orca, Yu et al., OSDI 2022, section 4; vLLM's ``pipeline_parallel_size``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.decode_pool import DecodePool
from simcore.cost.assumptions import HostOverhead
from simcore.cost.breakdown import OperatorTime, StepShape
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.split import Split
from simcore.cost.step_cost import StepCost
from simcore.cost.term import Counted, StepCounts, Term
from simcore.memory.kv_bytes import KvFormat
from simcore.memory.kv_groups import pipeline_stages
from simcore.models import ModelSpec
from simcore.models.weight_formats import ACTIVATION_BYTES

TENSORS_SENT = 2
"""Hidden states and the residual, apart, as vLLM's models pass them on (``IntermediateTensors``; recalled)."""


def hop_terms(spec: ModelSpec, prices: KernelPrices, ranks: int, link: str) -> Iterator[Term]:
    """What passes over a link to the next stage: ranks send their shares of each tensor, and the receivers gather it.

    So does vLLM (``send_tensor_dict`` in ``vllm/distributed/parallel_state.py``; recalled).
    """
    hidden_bytes = spec.hidden_size * int(ACTIVATION_BYTES)
    send = prices.collective("send_recv", 2, link)
    yield Term.message("stage_send_recv", TENSORS_SENT, send, hidden_bytes / ranks, Counted.OWN)
    if ranks > 1:
        gather = prices.collective("all_gather", ranks)
        yield Term.message("stage_all_gather", TENSORS_SENT, gather, hidden_bytes, Counted.OWN)


class PipelineCost:
    """Prices batches stage by stage; ``hops`` has the terms of what passes between each two stages.

    The host prepares a batch once, on the first stage; every stage launches its own kernels. A stage is occupied until
    the next one has what it sends.
    """

    def __init__(
        self,
        spec: ModelSpec,
        prices: KernelPrices,
        host: HostOverhead,
        weight_dtype: str,
        kv_format: KvFormat,
        split: Split,
        stages: int,
    ) -> None:
        ranks = split.tensor
        later = replace(host, step_s=0.0, per_request_s=0.0)
        self.stages = tuple(
            StepCost(spec, prices, later if part.start else host, weight_dtype, kv_format, ranks, part, split)
            for part in pipeline_stages(spec.layers, stages)
        )
        each = split.devices
        links = [prices.links.between(place * each, (place + 1) * each) for place in range(stages - 1)]
        self.hops = tuple(tuple(hop_terms(spec, prices, ranks, link)) for link in links)
        self.token_terms = tuple(chain(*(stage.token_terms for stage in self.stages), *self.hops))
        """Those of all stages and hops."""

    def computing_ns(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> list[int]:
        """What each stage computes on the next step of a plan, in nanoseconds."""
        if plan.chunks or plan.stalled:
            return [stage.step_ns(plan, pool, sampled_rows) for stage in self.stages]
        return [int(stage.decode_steps_ns(pool, 1)[0]) for stage in self.stages]

    def sent_tokens(self, chunks: Iterable[tuple[int, int]], decoding: int) -> int:
        """Tokens that a data-parallel rank passes on: those of the fullest, which sets the pace."""
        return self.stages[0].split.fullest_tokens(chunks, decoding)

    def sending_ns(self, tokens: int) -> list[int]:
        """What each stage then sends to the next, in nanoseconds, for so many ``sent_tokens``; the last: 0."""
        return [*(round(sum(term.seconds(tokens) for term in hop) * NS_PER_S) for hop in self.hops), 0]

    def host_ns(self, counts: StepCounts) -> float:
        """What the host adds to a step, on all stages."""
        return sum(stage.host_ns(counts) for stage in self.stages)

    def without_attention_ns(self, counts: StepCounts) -> float:
        """A step on all stages but for its attention, sends included."""
        computed_ns = sum(stage.without_attention_ns(counts) for stage in self.stages)
        return computed_ns + sum(self.sending_ns(counts.own_tokens))

    def stage_terms(self, shape: StepShape) -> list[list[OperatorTime]]:
        """A step told in parts, for each stage with what it sends."""
        tokens = self.stages[0].counts_in(shape).own_tokens
        sent = [[OperatorTime.of(term, tokens) for term in hop] for hop in self.hops]
        return [[*stage.terms(shape), *sends] for stage, sends in zip(self.stages, [*sent, []], strict=True)]
