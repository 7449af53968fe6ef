"""What ranks pass on in a forward pass: sums of their parts, tokens on their way to experts and back, and logits."""

from collections.abc import Iterator
from math import ceil

from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.model_operators import all_reduces
from simcore.cost.split import Split
from simcore.cost.term import Counted, Term
from simcore.models import MixtureOfExperts, ModelSpec
from simcore.models.weight_formats import ACTIVATION_BYTES


def all_reduce_terms(spec: ModelSpec, prices: KernelPrices, ranks: int, exchanges: int, embeds: bool) -> Iterator[Term]:
    """The sums over so many tensor-parallel ranks; ``exchanges`` layers with experts exchange tokens instead."""
    if ranks == 1:
        return
    price = prices.collective("all_reduce", ranks)
    for one in all_reduces(spec, exchanges, embeds):
        yield Term.message(one.name, one.count, price, one.bytes_per_token, Counted.OWN)


def expert_exchange(spec: ModelSpec, prices: KernelPrices, split: Split, layers: int) -> Iterator[Term]:
    """The two all-to-alls of ``layers`` layers with experts: dispatch, and combine on the way back.

    A token goes once to each of the ranks, on the mean, that have experts of its own (DeepSeek-V3, arXiv:2412.19437,
    section 3.2; its bound on nodes is not counted), and of a data-parallel rank's tokens each of its tensor-parallel
    ranks sends a share. Both ways it has 16 bits a number: engines may dispatch in fp8.
    """
    if not layers:
        return
    blocks = [group.feed_forward for group in spec.layer_groups]
    experts_per_token = max(block.experts_per_token for block in blocks if isinstance(block, MixtureOfExperts))
    price = prices.collective("all_to_all", split.devices)
    token_bytes = ceil(spec.hidden_size * ACTIVATION_BYTES / split.tensor)
    sent_bytes = split.ranks_reached(experts_per_token) * token_bytes * split.load
    for name in ("expert_dispatch", "expert_combine"):
        yield Term.message(name, layers, price, sent_bytes, Counted.OWN)


def logits_gather(spec: ModelSpec, prices: KernelPrices, ranks: int) -> Iterator[Term]:
    """Brings the logits of sampled rows together, of which each tensor-parallel rank has a part of the vocabulary.

    So do vLLM and SGLang, on all ranks (vLLM, ``LogitsProcessor``; recalled).
    """
    if ranks > 1:
        row_bytes = spec.vocabulary_size * int(ACTIVATION_BYTES)
        yield Term.message("logits_gather", 1, prices.collective("all_gather", ranks), row_bytes, Counted.ROWS)
