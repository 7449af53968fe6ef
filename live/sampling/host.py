"""Drawing tokens on a CPU: the rule and the random numbers of ``kernels.sample``, without work for unlikely tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernels.random_numbers import SAMPLE, exponentials, philox, random_words
from live.sampling.parameters import SamplingParameters

_FEW = (128, 2048)
"""Among so many of the likeliest tokens those to keep are looked for first, before all are sorted."""
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Draw:
    """What the draw of one row depends on, besides its logits."""

    parameters: SamplingParameters
    branch: int
    position: int


def draw_tokens(rows: Sequence[torch.Tensor], draws: Sequence[Draw]) -> list[int]:
    """The token of each row of float32 logits [vocabulary]: who wins the race of those that top-k and top-p keep."""
    kept = [_kept(row, draw.parameters) for row, draw in zip(rows, draws, strict=True)]
    few = [index for index, ids in enumerate(kept) if 4 * len(ids) < len(rows[index])]
    words = dict(zip(few, _words_of([kept[index] for index in few], [draws[index] for index in few]), strict=True))
    tokens = []
    for index, (row, draw, ids) in enumerate(zip(rows, draws, kept, strict=True)):
        own = words[index] if index in words else _all_words(draw, len(row))[ids]
        scaled = row[ids].double() / draw.parameters.temperature
        tokens.append(int(ids[(scaled - exponentials(own).log()).argmax()]))
    return tokens


def _kept(row: torch.Tensor, parameters: SamplingParameters) -> torch.Tensor:
    """Numbers of the tokens kept; those of equal logits stand or fall together."""
    count = len(row)
    limit = parameters.top_k if 0 < parameters.top_k < count else count
    if limit == count and parameters.top_p == 1:
        return torch.arange(count)
    mass = None if limit < count else _mass(row, row.max(), parameters.temperature)
    for size in (*(size for size in _FEW if size < count), count):
        values, ids = row.topk(size)
        lowest = _lowest(values, limit, mass, parameters)
        # A value as low as the last may be that of more tokens than are here.
        if lowest is not None and (size == count or lowest > values[-1]):
            return ids[values >= lowest]
    raise AssertionError("all tokens were looked at")


def _lowest(
    values: torch.Tensor, limit: int, mass: float | None, parameters: SamplingParameters
) -> torch.Tensor | None:
    """The lowest logit kept, of descending ``values``; None where it is further down.

    ``mass`` is that of all tokens, relative to the likeliest; None where it is that of those that top-k keeps.
    """
    if mass is None:
        if limit > len(values):
            return None
        values = values[values >= values[limit - 1]]
        mass = _mass(values, values[0], parameters.temperature)
    if parameters.top_p == 1:
        return values[-1]
    weights = ((values.double() - values[0]) / parameters.temperature).exp_().cumsum(0)
    reached = int(torch.searchsorted(weights, mass * _as_float32(parameters.top_p)))
    return values[reached] if reached < len(values) else None


def _mass(values: torch.Tensor, highest: torch.Tensor, temperature: float) -> float:
    return float(((values.double() - highest) / temperature).exp_().sum())


def _as_float32(number: float) -> float:
    """What a kernel is given."""
    return float(torch.tensor(number, dtype=torch.float32))


def _words_of(kept: Sequence[torch.Tensor], draws: Sequence[Draw]) -> Sequence[torch.Tensor]:
    """The random words of some tokens of each row, of all rows in one piece."""
    if not kept:
        return []
    sizes = torch.tensor([len(ids) for ids in kept])
    columns = [
        [draw.position for draw in draws],
        [draw.branch for draw in draws],
        [draw.parameters.seed & _MASK for draw in draws],
        [(draw.parameters.seed >> 32) & _MASK for draw in draws],
    ]
    position, branch, low, high = torch.tensor(columns).repeat_interleave(sizes, dim=1)
    ids = torch.cat(list(kept))
    words = torch.stack(philox((ids // 4, position, branch, torch.tensor(SAMPLE)), (low, high)))
    return words.gather(0, (ids % 4)[None])[0].split(sizes.tolist())


def _all_words(draw: Draw, vocabulary: int) -> torch.Tensor:
    """The random words of all tokens: four of each counter."""
    seed, branch, position = torch.tensor([[draw.parameters.seed], [draw.branch], [draw.position]])
    return random_words(seed, branch, position, SAMPLE, vocabulary)[0]
