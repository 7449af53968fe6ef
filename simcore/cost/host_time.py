"""What the host adds to the time of steps."""

from collections.abc import Iterator

from simcore.core.clock import NS_PER_S
from simcore.cost.assumptions import HostOverhead
from simcore.cost.breakdown import OperatorTime

HOST = "host"
"""The source of the host's time: constants that are assumed."""


class HostTime:
    """The host's time of steps that launch so many kernels, in nanoseconds.

    A step of one token per request is decodes alone. Of the ``layers``, ``linear_layers`` are of linear attention.
    """

    def __init__(self, host: HostOverhead, launches: int, layers: int, linear_layers: int) -> None:
        self._host = host
        self._linear_layers = linear_layers
        self.launches = launches
        self._eager_ns: float = (launches * host.launch_s + layers * host.layer_s) * NS_PER_S
        self._linear_prompt_ns: float = linear_layers * host.linear_prompt_s * NS_PER_S

    def between_steps_ns(self, requests: int) -> float:
        """What passes whatever the step does: scheduling, inputs, sampling and output."""
        return (self._host.step_s + self._host.per_request_s * requests) * NS_PER_S

    def waiting_ns(self, tokens: int, requests: int) -> float:
        """What the accelerator waits for in layers of linear attention, whose prompts are not launched ahead."""
        return self._linear_prompt_ns if tokens != requests else 0.0

    def launching_ns(self, tokens: int, requests: int, kernels_ns: float) -> float:
        """What launching the kernels of an eager step takes beyond the time of those that are no attention."""
        host = self._host
        if tokens <= host.max_cudagraph_tokens and (host.mixed_graphs or tokens == requests):
            return 0.0
        return max(self._eager_ns - kernels_ns, 0.0)

    def times(self, tokens: int, requests: int, kernels_ns: float) -> Iterator[OperatorTime]:
        """Each of them that a step has; that between steps always."""
        for name, count, taken_ns in (
            ("launching", self.launches, self.launching_ns(tokens, requests, kernels_ns)),
            ("waiting", self._linear_layers, self.waiting_ns(tokens, requests)),
        ):
            if taken_ns:
                yield OperatorTime(name, count, taken_ns / NS_PER_S, 0.0, 0.0, HOST, False)
        yield OperatorTime("host", 1, self.between_steps_ns(requests) / NS_PER_S, 0.0, 0.0, HOST, False)
