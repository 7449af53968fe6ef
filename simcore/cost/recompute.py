"""What computing part of a prompt again would take."""

from simcore.cost.attention import attention_work
from simcore.cost.linear_attention import linear_attention_work
from simcore.cost.model_operators import layer_operators
from simcore.cost.roofline import attended_pairs
from simcore.memory.kv_bytes import KvFormat
from simcore.models import ModelSpec


class RecomputeCost:
    """Floating point operations of prefilling tokens of a model, by how many stand before them."""

    def __init__(self, spec: ModelSpec) -> None:
        self._flops_per_token = sum(op.count * op.flops_per_token for op in layer_operators(spec, "bf16", ranks=1))
        self._flops_per_token += sum(work.count * work.flops_per_token for work in linear_attention_work(spec, ranks=1))
        self._attention = attention_work(spec, KvFormat(), ranks=1)

    def flops(self, tokens_before: int, tokens: int) -> float:
        """Of ``tokens`` tokens that attend to themselves and to the ``tokens_before``."""
        attention = sum(
            work.count * work.flops_per_pair * attended_pairs(tokens_before, tokens, work.window_tokens)
            for work in self._attention
        )
        return tokens * self._flops_per_token + attention
