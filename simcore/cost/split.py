"""How one forward pass is divided among the accelerators of a pipeline stage."""

from dataclasses import dataclass

from simcore.models import MixtureOfExperts, ModelSpec


@dataclass(frozen=True, slots=True)
class Split:
    """``tensor`` ranks share every matrix; ``data`` groups of them share the requests, ``expert`` ranks the experts.

    Tensor and data ranks together hold the experts: each has one of ``expert`` parts of them, and of every expert there
    one of ``expert_tensor`` parts. With one data group all ranks see all tokens, and results are summed as without
    expert parallelism (vLLM's ``enable_expert_parallel``); with several, tokens are sent to their experts and back.
    ``load`` is how many tokens the fullest expert rank gets for one of an even deal. All that is there ``context``
    times: each has an equal part of every prompt and of the KV cache.
    """

    tensor: int = 1
    data: int = 1
    expert: int = 1
    load: float = 1.0
    context: int = 1

    @property
    def devices(self) -> int:
        """Accelerators of a stage, of one context rank."""
        return self.tensor * self.data

    @property
    def expert_tensor(self) -> int:
        """Ranks that share the matrices of an expert."""
        return self.devices // self.expert

    def own_tokens(self, tokens: int) -> int:
        """Tokens of the fullest data group, requests dealt out evenly."""
        return -(-tokens // self.data)

    def step_tokens(self, decoding: int, prefill_tokens: int) -> int:
        """Tokens that one context rank computes: all that decode, and its part of prompts."""
        return decoding + -(-prefill_tokens // self.context)

    def ranks_reached(self, experts_per_token: int) -> float:
        """On how many expert ranks a token has experts, each rank drawn alike: n (1 - (1 - 1/n)^k)."""
        return self.expert * (1 - (1 - 1 / self.expert) ** experts_per_token)


def busiest_load(weights: tuple[float, ...], parts: int) -> float:
    """The share of tokens that the fullest of ``parts`` ranks gets, over an even one; experts lie in order on ranks.

    ``weights`` are how often each expert is chosen, in any unit.
    """
    held = len(weights) // parts
    loads = [sum(weights[place : place + held]) for place in range(0, len(weights), held)]
    return max(loads) * parts / sum(weights)


def mixture_layers(spec: ModelSpec) -> int:
    """Layers that have experts."""
    return sum(group.count for group in spec.layer_groups if isinstance(group.feed_forward, MixtureOfExperts))
