"""The replica with the fewest prompt tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

from policies.routing import LoadAware
from policies.views import RoutedRequestView, RouterView


@dataclass(slots=True)
class LeastTokens(LoadAware):
    """Send each request to the replica whose requests, waiting and running, have the fewest prompt tokens in all.

    Among equals the one that got a request longest ago is next.

    Source: own; least work left, where the length of an answer is not known and that of a prompt is.
    """

    def load(self, request: RoutedRequestView) -> int:
        """Its prompt."""
        return request.prompt_tokens

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The one with the fewest."""
        return self.loads(replicas).least
