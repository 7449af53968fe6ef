"""What an engine does within other kernels or beside them."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

Producer = Literal["norm", "attention", "activation", "permutation"]
"""What makes the input of a GEMM: a norm, attention, an activation, or the sorting of tokens by experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusion:
    """What an engine does within another kernel or beside it, so that it takes no time of its own.

    ``operators`` are by name, each with the kernel that does it too. What an "all_reduce" does is done so by several
    tensor-parallel ranks alone. ``quantisation`` tells by the format of weights whose outputs are quantised as they are
    written. Of steps of up to ``shared_expert_tokens``, shared experts run beside routed ones: they take the bandwidth
    that their weights need, and no more. All-reduces of up to ``all_reduce_norm_bytes`` norm their sums.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    operators: dict[str, str] = field(default_factory=dict)
    quantisation: dict[str, list[Producer]] = field(default_factory=dict)
    shared_expert_tokens: Annotated[int, Field(ge=0)] = 0
    all_reduce_norm_bytes: Annotated[int, Field(ge=0)] = 0

    def host_of(self, operator: str, ranks: int) -> str:
        """The kernel that does what an operator says on one of so many ranks; empty if the operator is one itself."""
        host = self.operators.get(operator, "")
        return "" if host == "all_reduce" and ranks == 1 else host
