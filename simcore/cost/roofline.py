"""Roofline prices (Williams et al., CACM 2009): a kernel takes the longer of its arithmetic and its memory traffic."""

from dataclasses import dataclass

from simcore.core.errors import InputError
from simcore.cost.assumptions import RooflineEfficiency
from simcore.cost.operators import ExpertMatrices, Matrix, Operator
from simcore.hardware import Accelerator
from simcore.models.weight_formats import weight_format


@dataclass(frozen=True, slots=True)
class Roofline:
    """Prices of operators on one accelerator, in seconds.

    ``matmul_flops_per_s`` and ``attention_flops_per_s`` are datasheet peaks for the dtypes at work.
    """

    accelerator: Accelerator
    efficiency: RooflineEfficiency
    matmul_flops_per_s: float
    attention_flops_per_s: float

    @classmethod
    def of(cls, accelerator: Accelerator, efficiency: RooflineEfficiency, weight_dtype: str) -> "Roofline":
        """The roofline for weights of a dtype; weights narrower than the tensor cores' are computed in 16 bits.

        Raises ``InputError`` if the accelerator computes neither in that dtype nor in 16 bits.
        """
        peaks = accelerator.peak_flops_per_s
        sixteen_bits = peaks.get("bf16") or peaks.get("fp16") or peaks.get("fp32")
        if sixteen_bits is None:
            raise InputError("cluster.accelerator", accelerator.name, "one with a stated bf16, fp16 or fp32 rate")
        return cls(
            accelerator, efficiency, peaks.get(weight_format(weight_dtype).compute_dtype, sixteen_bits), sixteen_bits
        )

    def operator_s(self, operator: Operator, tokens: int) -> float:
        """One operator over ``tokens`` tokens; each kernel that it stands for takes the floor at least.

        Nothing is launched for no tokens.
        """
        if tokens == 0:
            return 0.0
        compute_s = operator.flops(tokens) / (self._rate_of(operator) * self.efficiency.matmul_compute)
        floors_s = self.floors_s(operator.launches - operator.small_launches)
        memory_s = self.memory_s(operator.bytes(tokens), self._widens(operator))
        return max(compute_s, memory_s, floors_s) + self.floors_s(operator.small_launches)

    def floors_s(self, launches: int) -> float:
        """What so many kernels take at least."""
        return launches * self.efficiency.kernel_floor_s

    def memory_s(self, moved_bytes: float, widened: bool = False) -> float:
        """Time that the memory traffic of kernels other than attention takes, their weights ``widened`` or not."""
        share = self.efficiency.widened_memory if widened else self.efficiency.matmul_memory
        return moved_bytes / (self.accelerator.memory_bandwidth_bytes_per_s * share)

    def _widens(self, operator: Operator) -> bool:
        """Whether the operator's weights are in fewer bits than the numbers that it multiplies."""
        if not isinstance(operator.shape, Matrix | ExpertMatrices):
            return False
        stored = weight_format(operator.shape.weights)
        return stored.bits < 16 and (
            (not stored.quantises_activations and stored.compute_dtype == "bf16")
            or stored.compute_dtype not in self.accelerator.peak_flops_per_s
        )

    def _rate_of(self, operator: Operator) -> float:
        """The peak for the operator's own weights: a model's router and head may be wider than the rest."""
        if not isinstance(operator.shape, Matrix | ExpertMatrices):
            return self.matmul_flops_per_s
        peaks = self.accelerator.peak_flops_per_s
        return peaks.get(weight_format(operator.shape.weights).compute_dtype, self.attention_flops_per_s)

    def attention_compute_s(self, flops: float) -> float:
        """Time that an attention kernel's arithmetic takes."""
        return flops / (self.attention_flops_per_s * self.efficiency.attention_compute)

    def attention_memory_s(self, moved_bytes: float) -> float:
        """Time that an attention kernel's memory traffic takes."""
        return moved_bytes / (self.accelerator.memory_bandwidth_bytes_per_s * self.efficiency.attention_memory)

    def crossing_s(self, crossing_bytes: float, link_bytes_per_s: float) -> float:
        """Time of a collective of which so many bytes cross each link, per direction."""
        if crossing_bytes == 0:
            return 0.0
        efficiency = self.efficiency
        return max(crossing_bytes / (link_bytes_per_s * efficiency.interconnect), efficiency.collective_floor_s)


def attended_pairs(computed_tokens: int, tokens: int, window_tokens: int | None) -> int:
    """Pairs of a query of the chunk and a token that it sees: all before it and itself, within its window."""
    if window_tokens is None:
        return tokens * computed_tokens + tokens * (tokens + 1) // 2
    growing = min(tokens, max(0, window_tokens - computed_tokens))
    return growing * computed_tokens + growing * (growing + 1) // 2 + (tokens - growing) * window_tokens


def read_context(computed_tokens: int, tokens: int, window_tokens: int | None) -> int:
    """Tokens whose keys and values a chunk reads: those before it, as far as its first query sees, and its own."""
    context = computed_tokens + tokens
    return context if window_tokens is None else min(context, window_tokens + tokens)
