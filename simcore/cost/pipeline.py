"""Pipeline parallelism: what each stage takes for a batch, and what passes from stage to stage.

Layers are split over stages (GPipe, Huang et al., arXiv:1811.06965), through which batches follow one another, one in
each stage (Orca, Yu et al., OSDI 2022, section 4; vLLM's ``pipeline_parallel_size``).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.decode_pool import DecodePool
from simcore.cost.assumptions import HostOverhead
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.prices import Price
from simcore.cost.split import Split
from simcore.cost.step_cost import StepCost
from simcore.memory.kv_bytes import KvFormat
from simcore.memory.kv_groups import pipeline_stages
from simcore.models import ModelSpec
from simcore.models.weight_formats import ACTIVATION_BYTES

TENSORS_SENT = 2
"""Hidden states and the residual, apart, as vLLM's models pass them on (``IntermediateTensors``; recalled)."""


@dataclass(frozen=True, slots=True)
class Hop:
    """What lies between a stage and the next: every rank sends its share of each tensor, and the receivers gather it.

    So does vLLM (``send_tensor_dict`` in ``vllm/distributed/parallel_state.py``; recalled). ``gather`` is None where a
    stage is one rank.
    """

    send: Price
    gather: Price | None
    ranks: int
    hidden_bytes: int

    def sent_bytes(self, tokens: int) -> int:
        """What a rank sends of one tensor."""
        return -(-tokens * self.hidden_bytes // self.ranks)

    def gathered_bytes(self, tokens: int) -> int:
        """What every rank then has of it."""
        return tokens * self.hidden_bytes

    def send_s(self, tokens: int) -> float:
        """All sends for so many tokens."""
        return TENSORS_SENT * self.send.seconds(self.sent_bytes(tokens))

    def gather_s(self, tokens: int) -> float:
        """All gathers for so many tokens."""
        return 0.0 if self.gather is None else TENSORS_SENT * self.gather.seconds(self.gathered_bytes(tokens))


class PipelineCost:
    """Prices batches stage by stage; ``hops`` has one between each two stages.

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
        hidden_bytes = spec.hidden_size * int(ACTIVATION_BYTES)
        gather = prices.collective("all_gather", ranks) if ranks > 1 else None
        each = split.devices
        links = [prices.links.between(place * each, (place + 1) * each) for place in range(stages - 1)]
        self.hops = tuple(Hop(prices.collective("send_recv", 2, link), gather, ranks, hidden_bytes) for link in links)

    def computing_ns(self, plan: BatchPlan, pool: DecodePool, sampled_rows: int) -> list[int]:
        """What each stage computes on the next step of a plan, in nanoseconds."""
        if plan.chunks or plan.stalled:
            return [stage.step_ns(plan, pool, sampled_rows) for stage in self.stages]
        return [int(stage.decode_steps_ns(pool, 1)[0]) for stage in self.stages]

    def sent_tokens(self, chunks: Iterable[tuple[int, int]], decoding: int) -> int:
        """Tokens that the ranks of a data group pass on: those of the fullest, which sets the pace."""
        return self.stages[0].fullest_group_tokens(chunks, decoding)

    def sending_ns(self, tokens: int) -> list[int]:
        """What each stage then sends to the next, in nanoseconds, for so many ``sent_tokens``; the last: 0."""
        sent = [round((hop.send_s(tokens) + hop.gather_s(tokens)) * NS_PER_S) for hop in self.hops]
        return [*sent, 0]
