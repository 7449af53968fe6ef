"""One token for each row of logits."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernels.sampling import sample
from live.sampling.host import Draw, draw_tokens
from live.sampling.parameters import SamplingParameters


@dataclass(frozen=True, slots=True)
class Row:
    """Whose token a row of logits decides.

    ``position`` is that of the token in its sequence, prompt included; ``branch`` numbers the outputs of one request
    (0 for the first), which draw independently.
    """

    parameters: SamplingParameters
    position: int
    branch: int = 0


@dataclass(frozen=True, slots=True)
class Sampled:
    """A token; with ``logprobs``, its own and those of the likeliest tokens, the likeliest first."""

    token: int
    logprob: float | None = None
    likeliest: tuple[tuple[int, float], ...] = ()


def sample_rows(logits: torch.Tensor, rows: Sequence[Row]) -> list[Sampled]:
    """A token for each row of float32 ``logits`` [rows, vocabulary]; waits for the device.

    The draw depends on the row's seed, branch and position and its own logits alone: by ``kernels.sample`` on a GPU,
    by the same rule and numbers on a CPU. Of equally likely tokens a greedy row takes the first.
    """
    if not rows:
        return []
    tokens = _tokens(logits, rows)
    asking = [index for index, row in enumerate(rows) if row.parameters.logprobs is not None]
    if not asking:
        return [Sampled(token) for token in tokens]
    told = _logprobs(logits, rows, asking, tokens)
    return [told.get(index) or Sampled(token) for index, token in enumerate(tokens)]


def _tokens(logits: torch.Tensor, rows: Sequence[Row]) -> list[int]:
    drawn = [index for index, row in enumerate(rows) if not row.parameters.greedy]
    if drawn and logits.device.type != "cpu":
        return _on_device(logits, rows)
    # numpy looks for the greatest many times faster than torch does on a CPU.
    greatest = logits.numpy().argmax(axis=1) if logits.device.type == "cpu" else logits.argmax(dim=1)
    tokens: list[int] = greatest.tolist()
    draws = [Draw(rows[index].parameters, rows[index].branch, rows[index].position) for index in drawn]
    for index, token in zip(drawn, draw_tokens([logits[index] for index in drawn], draws), strict=True):
        tokens[index] = token
    return tokens


def _on_device(logits: torch.Tensor, rows: Sequence[Row]) -> list[int]:
    given = [row.parameters for row in rows]
    place = logits.device
    tokens: list[int] = sample(
        logits,
        torch.tensor([each.temperature for each in given], dtype=torch.float32, device=place),
        torch.tensor([each.top_k for each in given], dtype=torch.int32, device=place),
        torch.tensor([each.top_p for each in given], dtype=torch.float32, device=place),
        torch.tensor([each.seed for each in given], dtype=torch.int64, device=place),
        torch.tensor([row.branch for row in rows], dtype=torch.int64, device=place),
        torch.tensor([row.position for row in rows], dtype=torch.int64, device=place),
    ).tolist()
    return tokens


def _logprobs(
    logits: torch.Tensor, rows: Sequence[Row], asking: Sequence[int], tokens: Sequence[int]
) -> dict[int, Sampled]:
    logs = logits[torch.tensor(asking, device=logits.device)].float().log_softmax(dim=1)
    most = min(max(rows[index].parameters.logprobs or 0 for index in asking), logits.shape[1])
    chosen = logs.gather(1, torch.tensor([[tokens[index]] for index in asking], device=logits.device))[:, 0].tolist()
    best, ids = (part.tolist() for part in logs.topk(most, dim=1))
    told = {}
    for place, index in enumerate(asking):
        count = rows[index].parameters.logprobs or 0
        likeliest = tuple(zip(ids[place][:count], best[place][:count], strict=True))
        told[index] = Sampled(tokens[index], chosen[place], likeliest)
    return told
