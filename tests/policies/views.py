"""Hand-made views for tests of single policies: what a policy may look at, with every figure set by hand."""

from dataclasses import dataclass, field


@dataclass
class FakeRequest:
    number: int = 0
    arrival_s: float = 0.0
    prompt_tokens: int = 100
    max_output_tokens: int = 1000
    tenant: str = ""
    priority: int = 0
    generated_tokens: int = 0
    preemptions: int = 0
    tokens_in_memory: int = 0
    session: int | None = None
    keys: list[int] = field(default_factory=list)

    def prefix_keys(self, block_tokens):
        return self.keys


@dataclass
class FakeGroup:
    """A tenant's or a level's requests; ``first`` waits."""

    name: str = ""
    first: FakeRequest = field(default_factory=FakeRequest)
    running_requests: int = 0
    context_tokens: int = 0
    prompt_tokens_served: int = 0
    output_tokens_served: int = 0
    service_s: float = 0.0


@dataclass
class FakeReplica:
    waiting_requests: int = 0
    running_requests: int = 0
    decoding_requests: int = 0
    oldest_arrival_s: float | None = None
    next_blocks: int | None = None
    decode_steps: int = 0
    free_blocks: int = 100
    total_blocks: int = 100
    s_per_token: float = 0.0
    waiting_tokens: int = 0
    unseen_requests: int = 0
    cached: int = 0
    running_tokens: int = 0

    def cached_tokens(self, request):
        return self.cached

    def prefix_keys(self, request):
        return request.keys

    @property
    def prefilling_requests(self):
        return self.running_requests - self.decoding_requests

    @property
    def queued_requests(self):
        return self.waiting_requests - self.unseen_requests

    def step_s(self, prompt_tokens):
        return self.s_per_token * (self.decoding_requests + prompt_tokens)


def known(predictor, **output_tokens):
    """The predictor, told the true lengths of requests by number: ``known(Oracle(), _3=50)``."""
    for name, tokens in output_tokens.items():
        predictor.reveal(FakeRequest(int(name.removeprefix("_"))), tokens)
    return predictor
