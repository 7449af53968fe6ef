"""The terms of a step: one list, which pricing sums, ``explain`` maps, shares group by source and MFU and MBU add up.

All kernels are here whose work depends on numbers of tokens alone. Attention depends on contexts too: its terms are
those of ``compiled_attention`` and ``compiled_linear_attention``. The host's are in ``host_time``.
"""

from collections.abc import Iterable, Iterator

from simcore.cost.attention import AttentionWork
from simcore.cost.exchange import all_reduce_terms, expert_exchange, logits_gather
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.model_operators import (
    embedding_operators,
    final_norm_operators,
    head_operators,
    layer_operators,
)
from simcore.cost.ring import context_merge
from simcore.cost.split import Split, moe_layers
from simcore.cost.term import Counted, Term
from simcore.models import ModelSpec


def step_terms(
    spec: ModelSpec,
    prices: KernelPrices,
    weight_dtype: str,
    attention: Iterable[AttentionWork],
    split: Split,
    embeds: bool = True,
    has_head: bool = True,
) -> Iterator[Term]:
    """The terms of a model's layers on one rank, in the order in which they run; messages between ranks last.

    With ``embeds`` the embedding comes before the layers, with ``has_head`` the last norm and the head after them.
    """
    ranks = split.tensor
    exchanges = moe_layers(spec) if split.data > 1 else 0
    operators = [
        *(embedding_operators(spec) if embeds else ()),
        *layer_operators(spec, weight_dtype, ranks, split, prices.engine),
        *(final_norm_operators(spec) if has_head else ()),
    ]
    for operator in operators:
        tokens = Counted.ALL if operator.experts > 1 else Counted.OWN
        yield Term.of(operator, prices.operator(operator), tokens)
    if has_head:
        for operator in head_operators(spec, ranks, weight_dtype):
            yield Term.of(operator, prices.operator(operator), Counted.ROWS)
        yield from logits_gather(spec, prices, ranks)
    yield from all_reduce_terms(spec, prices, ranks, exchanges, embeds)
    yield from expert_exchange(spec, prices, split, exchanges)
    yield from context_merge(prices, split, attention)
