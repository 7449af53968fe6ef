"""Kernels of a forward pass on one rank, with the work that each does."""

from dataclasses import dataclass

MEASURED_AS = {
    "norm": "norm",
    "final_norm": "norm",
    "embedding": "embedding",
    "rotary_and_kv_write": "rotary_and_kv_write",
    "query_key_norm": "query_key_norm",
    "mlp_activation": "activation",
    "shared_expert_activation": "activation",
    "sampling": "sampling",
}
"""What measurements call elementwise operators. Public ones of rotary embeddings leave out the write of keys and
values, which our operator counts with them and vLLM launches apart: profiles without that are left to the roofline."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The part of a matrix on one rank, ``outputs`` x ``inputs``; ``weights`` names its format."""

    weights: str
    outputs: int
    inputs: int


@dataclass(frozen=True, slots=True)
class ExpertMatrices:
    """Gated experts of width ``intermediate``, each split over ``ranks``; ``weights`` names their format.

    ``expert_ranks`` hold a part of the experts each, of which the fullest gets ``load`` times its even share of tokens.
    """

    weights: str
    hidden: int
    intermediate: int
    ranks: int
    expert_ranks: int = 1
    load: float = 1.0


@dataclass(frozen=True, slots=True)
class QuantisedInputs:
    """Inputs of GEMMs that are brought to the numbers that weights in a format are multiplied in."""

    weights: str


@dataclass(frozen=True, slots=True)
class Operator:
    """A kernel whose work depends on the number of tokens alone; ``count`` alike in one forward pass.

    With ``experts``, each token uses ``experts_per_token`` of that many sets of ``weight_bytes``. ``shape`` is that of
    the matrices, by which measurements are found; None for kernels without, and where none are measured. ``launches``
    is how many kernels it stands for. ``small_launches`` of them do next to nothing, the others alike. An operator
    ``within`` another kernel is done by that one and takes nothing. In steps of up to ``beside_tokens`` it runs beside
    others.
    """

    name: str
    count: int
    flops_per_token: float
    weight_bytes: float
    activation_bytes_per_token: float
    experts: int = 1
    experts_per_token: int = 1
    shape: Matrix | ExpertMatrices | QuantisedInputs | None = None
    launches: int = 1
    small_launches: int = 0
    within: str = ""
    beside_tokens: int = 0

    def flops(self, tokens: int) -> float:
        """Floating-point operations of one such kernel over ``tokens`` tokens."""
        return self.flops_per_token * tokens

    def bytes(self, tokens: int) -> float:
        """Bytes that one such kernel must read and write over ``tokens`` tokens.

        With balanced routing a token misses one expert with probability 1 - k/E, so that E * (1 - (1 - k/E)^tokens)
        distinct experts are read.
        """
        missed = (1 - self.experts_per_token / self.experts) ** tokens
        return self.experts * (1 - missed) * self.weight_bytes + self.activation_bytes_per_token * tokens


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Sums over the ranks, ``count`` alike in one forward pass."""

    name: str
    count: int
    bytes_per_token: int
