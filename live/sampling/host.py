"""Drawing a token on a CPU: the rule and the random numbers of ``kernels.sample``, without work for unlikely tokens."""

import torch

from kernels.random_numbers import SAMPLE, exponentials, philox, random_words
from live.sampling.parameters import SamplingParameters

_LIKELY = (128, 2048)
"""Tokens among which top-p is looked for first, before all are sorted."""


def draw(logits: torch.Tensor, parameters: SamplingParameters, branch: int, position: int) -> int:
    """The token that one row of logits [vocabulary] gives: it wins the race of those that top-k and top-p keep."""
    scaled = logits.double() / parameters.temperature
    kept = _kept(scaled, parameters)
    words = _words(kept, len(logits), parameters.seed, branch, position)
    return int(kept[(scaled[kept] - exponentials(words).log()).argmax()])


def _kept(scaled: torch.Tensor, parameters: SamplingParameters) -> torch.Tensor:
    """Numbers of the tokens kept, in ascending order; those of equal logits stand or fall together."""
    count = len(scaled)
    candidates = scaled > -torch.inf
    if 0 < parameters.top_k < count:
        candidates = scaled >= scaled.topk(parameters.top_k).values[-1]
    if parameters.top_p < 1:
        values = scaled[candidates]
        weights = (values - values.max()).exp_()
        candidates &= scaled >= _lowest(values, float(weights.sum()) * _as_float32(parameters.top_p))
    return candidates.nonzero()[:, 0]


def _lowest(values: torch.Tensor, mass: float) -> torch.Tensor:
    """The lowest value above which there is less than ``mass``; weights are relative to the highest value."""
    for size in (*_LIKELY, len(values)):
        descending = values.topk(min(size, len(values))).values
        above = (descending - descending[0]).exp_().cumsum(0)
        enough = (above >= mass).nonzero()
        if len(enough):
            return descending[enough[0, 0]]
    return descending[-1]


def _as_float32(number: float) -> float:
    """What a kernel is given."""
    return float(torch.tensor(number, dtype=torch.float32))


def _words(tokens: torch.Tensor, vocabulary: int, seed: int, branch: int, position: int) -> torch.Tensor:
    """The random words of some tokens."""
    if 4 * len(tokens) > vocabulary:
        row = torch.tensor([[seed], [branch], [position]])
        return random_words(row[0], row[1], row[2], SAMPLE, vocabulary)[0, tokens]
    fixed = (torch.tensor(number) for number in (position, branch, SAMPLE))
    key = torch.tensor(seed & 0xFFFFFFFF), torch.tensor((seed >> 32) & 0xFFFFFFFF)
    words = torch.stack(philox((tokens // 4, *fixed), key))
    return words[tokens % 4, torch.arange(len(tokens))]
