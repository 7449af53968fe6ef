"""Parts of a step's price, added up from its terms by hand."""

from simcore.core.clock import NS_PER_S
from simcore.cost.term import Counted, StepCounts


def whole(tokens, rows, requests, decoding=0):
    """The counts of a step on one data-parallel rank."""
    return StepCounts(tokens, tokens, rows, decoding, requests)


def layers_ns(cost, tokens):
    """What depends on the step's tokens, messages between ranks included."""
    terms = (term for term in cost.token_terms if term.tokens in (Counted.ALL, Counted.OWN))
    return sum(term.seconds(tokens) for term in terms) * NS_PER_S


def head_ns(cost, rows):
    """What depends on the sampled rows."""
    return sum(term.seconds(rows) for term in cost.token_terms if term.tokens is Counted.ROWS) * NS_PER_S


def terms_by_name(cost):
    """The terms, the first of each name."""
    return {term.name: term for term in reversed(cost.token_terms)}
