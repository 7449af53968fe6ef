"""A step explained: its operators against the peaks of the accelerator."""

from dataclasses import dataclass
from itertools import chain

from simcore.build.memory_report import memory_report
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import OperatorTime, StepShape, together
from simcore.cost.calibrated import Source
from simcore.cost.price_shares import unmeasured
from simcore.output.cluster_text import described

_CHUNK_TOKENS = 512
_PROMPT_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class Explanation:
    """The operators of one step on one rank, and the datasheet peaks of the accelerator at the scenario's dtypes.

    Of a pipeline they are those of one rank of every stage, which ``stage_s`` says the times of, sends included.
    ``profile`` is the kernel profile, ``fallback_profiles`` those that price kernel kinds it lacks, ``unmeasured`` what
    a roofline prices since it has no measurements of it.
    """

    shape: StepShape
    operators: tuple[OperatorTime, ...]
    model: str
    accelerator: str
    ranks: int
    peak_flops_per_s: float
    peak_bytes_per_s: float
    devices: str
    profile: str | None
    fallback_profiles: dict[str, str]
    unmeasured: list[str]
    stage_s: tuple[float, ...] = ()
    fused: tuple[str, ...] = ()
    """What the engine does within other kernels, or beside them."""

    @property
    def kernels(self) -> str:
        """Whose kernels the step is priced by, in a sentence."""
        if self.profile is None:
            fitted = any(operator.source == Source.ALPHA_BETA for operator in self.operators)
            return f"No kernel profile: all kernels{' but collectives' if fitted else ''} are priced by roofline."
        others = "".join(f", {kind.replace('_', ' ')} of {name}" for kind, name in self.fallback_profiles.items())
        missing = f" It has no measurements of {', '.join(self.unmeasured)}." if self.unmeasured else ""
        return f"Kernels of {self.profile}{others}.{missing}"

    @property
    def fusion(self) -> str:
        """What takes no time of its own, in a sentence; empty if everything does."""
        return f"No time of their own take {', '.join(self.fused)}." if self.fused else ""

    @property
    def seconds(self) -> float:
        """The whole step."""
        return sum(operator.seconds for operator in self.operators)

    @property
    def devices_s(self) -> float:
        """The time that all stages have between two batches, when each always has the next one to compute."""
        return max(self.stage_s) * len(self.stage_s) if self.stage_s else self.seconds

    @property
    def mfu(self) -> float:
        """The step's arithmetic over what the peak could do in its time (model FLOPs utilisation)."""
        return sum(operator.flops for operator in self.operators) / (self.devices_s * self.peak_flops_per_s)

    @property
    def mbu(self) -> float:
        """The step's memory traffic over what the peak could move in its time (model bandwidth utilisation)."""
        return sum(operator.bytes for operator in self.operators) / (self.devices_s * self.peak_bytes_per_s)

    def mfu_of(self, operator: OperatorTime) -> float:
        """The same of one operator."""
        return operator.flops / (operator.seconds * self.peak_flops_per_s) if operator.seconds else 0.0

    def mbu_of(self, operator: OperatorTime) -> float:
        """The same of one operator."""
        return operator.bytes / (operator.seconds * self.peak_bytes_per_s) if operator.seconds else 0.0


def explain_step(simulation: Simulation, shape: StepShape) -> Explanation:
    """Explain a step of a scenario."""
    pipeline = simulation.pipeline
    stages = [simulation.cost.terms(shape)] if pipeline is None else pipeline.stage_terms(shape)
    stage_s = tuple(sum(time.seconds for time in times) for times in stages)
    prices, several = simulation.cost.prices, simulation.scenario.cluster.devices_per_replica > 1
    fallbacks = sorted(prices.fallback_profiles.items())
    others = {kind: fallback.name for kind, fallback in fallbacks if kind != "collective" or several}
    return Explanation(
        shape,
        tuple(together(chain(*stages))),
        simulation.spec.name,
        simulation.accelerator.name,
        simulation.scenario.cluster.tensor_parallel,
        simulation.cost.peak_flops_per_s,
        simulation.accelerator.memory_bandwidth_bytes_per_s,
        described(simulation.scenario.cluster.model_dump() | {"accelerator": simulation.accelerator.name}),
        None if prices.profile is None else prices.profile.name,
        others,
        [] if prices.profile is None else unmeasured(simulation.cost),
        () if pipeline is None else stage_s,
        _fused(simulation),
    )


def _fused(simulation: Simulation) -> tuple[str, ...]:
    """Operators of the model that are part of other kernels, or run beside them, each once."""
    found: dict[str, None] = {}
    for term in simulation.cost.token_terms:
        operator = term.operator
        if operator is not None and operator.within:
            found[f"{operator.name} (in {operator.within})"] = None
        elif operator is not None and operator.beside_tokens:
            beside = "all-reduces" if operator.name in ("norm", "activation_quantisation") else "routed experts"
            found[f"{operator.name} (beside {beside}, up to {operator.beside_tokens} tokens)"] = None
    return tuple(found)


def usual_shapes(simulation: Simulation) -> list[StepShape]:
    """One decode of the workload's mean length, as many as run at once, a prompt, and those decodes beside a chunk."""
    longest = simulation.max_context_tokens
    report = memory_report(simulation.memory, simulation.workload, longest)
    typical = report.requests["mean" if "mean" in report.requests else "context"]["tokens"]
    many = max(int(report.limit["requests"]), 1)
    chunk, prompt = min(_CHUNK_TOKENS, longest), min(_PROMPT_TOKENS, longest)
    return [
        StepShape(1, typical),
        StepShape(many, typical),
        StepShape(chunks=((prompt, 0),)),
        StepShape(many, typical, ((chunk, 0),)),
    ]
