"""A step explained: its operators against the peaks of the accelerator."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simcore.cost.breakdown import OperatorTime, StepShape, breakdown
from simcore.memory.report import memory_report, request_lengths

if TYPE_CHECKING:
    from simcore.simulation import Simulation

_CHUNK_TOKENS = 512
_PROMPT_TOKENS = 2048


@dataclass(frozen=True, slots=True)
class Explanation:
    """The operators of one step on one rank, and the datasheet peaks of the accelerator at the scenario's dtypes."""

    shape: StepShape
    operators: tuple[OperatorTime, ...]
    model: str
    accelerator: str
    ranks: int
    peak_flops_per_s: float
    peak_bytes_per_s: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return sum(operator.seconds for operator in self.operators)

    @property
    def mfu(self) -> float:
        """The step's arithmetic over what the peak could do in its time (model FLOPs utilisation)."""
        return sum(operator.flops for operator in self.operators) / (self.seconds * self.peak_flops_per_s)

    @property
    def mbu(self) -> float:
        """The step's memory traffic over what the peak could move in its time (model bandwidth utilisation)."""
        return sum(operator.bytes for operator in self.operators) / (self.seconds * self.peak_bytes_per_s)

    def mfu_of(self, operator: OperatorTime) -> float:
        """The same of one operator."""
        return operator.flops / (operator.seconds * self.peak_flops_per_s) if operator.seconds else 0.0

    def mbu_of(self, operator: OperatorTime) -> float:
        """The same of one operator."""
        return operator.bytes / (operator.seconds * self.peak_bytes_per_s) if operator.seconds else 0.0


def explain_step(simulation: "Simulation", shape: StepShape) -> Explanation:
    """Explain a step of a scenario."""
    return Explanation(
        shape,
        tuple(breakdown(simulation.cost, shape)),
        simulation.spec.name,
        simulation.accelerator.name,
        simulation.scenario.cluster.tensor_parallel,
        simulation.cost.peak_flops_per_s,
        simulation.accelerator.memory_bandwidth_bytes_per_s,
    )


def usual_shapes(simulation: "Simulation") -> list[StepShape]:
    """One decode of the workload's mean length, as many as run at once, a prompt, and those decodes beside a chunk."""
    longest = simulation.max_context_tokens
    lengths = request_lengths(simulation.workload, longest)
    report = memory_report(simulation.memory, lengths, longest)
    typical = report.requests["mean" if "mean" in report.requests else "context"]["tokens"]
    many = max(int(report.limit["requests"]), 1)
    chunk, prompt = min(_CHUNK_TOKENS, longest), min(_PROMPT_TOKENS, longest)
    return [
        StepShape(1, typical),
        StepShape(many, typical),
        StepShape(chunks=((prompt, 0),)),
        StepShape(many, typical, ((chunk, 0),)),
    ]
