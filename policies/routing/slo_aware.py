"""A replica that is expected to keep the limit on the first token, and has few tokens to hold and to compute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from policies.bounds import MOST_SEED, check_amounts, check_counts, check_range, check_seconds
from policies.chance import uniform
from policies.routing import Routing
from policies.views import RoutedRequestView, RouterView


@dataclass(frozen=True, slots=True)
class SloAware(Routing):
    """Expect of up to `candidates` replicas when each would give the first token, and choose among those in time.

    What a replica has to compute before is its queue and what it has not cached of the prompt, at
    `prefill_tokens_per_s`. Of those within `ttft_s` the one with the fewest tokens takes the request: those of the
    prompt that are not cached and those that its running requests hold. If none is within it, the one that is expected
    first does. Candidates are drawn by chance; ties keep the order drawn. `ttft_s` is the tightest objective of the
    scenario unless stated.

    Source: Mooncake's conductor (Qin et al., FAST 2025, section 6), which estimates TTFT by queue and cached prefix.
    """

    ttft_s: float = 2.0
    prefill_tokens_per_s: float = 20_000.0
    candidates: int = 4
    seed: int = 0

    knows_places: ClassVar[bool] = False
    from_objectives: ClassVar[Mapping[str, str]] = {"ttft_s": "ttft_s"}

    def __post_init__(self) -> None:
        check_seconds(self, "ttft_s")
        check_amounts(self, "prefill_tokens_per_s")
        check_counts(self, "candidates")
        check_range(self, 0, MOST_SEED, "seed")

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The best of the candidates."""
        return min(self._drawn(request, len(replicas)), key=lambda place: self._key(replicas[place], request))

    def _drawn(self, request: RoutedRequestView, count: int) -> Sequence[int]:
        """Different replicas by chance, all of them where there are no more."""
        if count <= self.candidates:
            first = int(uniform(self.seed, request.number) * count)
            return [*range(first, count), *range(first)]
        drawn: dict[int, None] = {}
        stream = 0
        while len(drawn) < self.candidates:
            drawn[int(uniform(self.seed, request.number, stream) * count)] = None
            stream += 1
        return list(drawn)

    def _key(self, replica: RouterView, request: RoutedRequestView) -> tuple[bool, float]:
        uncached_tokens = request.prompt_tokens - replica.cached_tokens(request)
        expected_s = (replica.waiting_tokens + uncached_tokens) / self.prefill_tokens_per_s
        late = expected_s > self.ttft_s
        return late, expected_s if late else uncached_tokens + replica.running_tokens
