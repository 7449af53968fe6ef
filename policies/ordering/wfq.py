"""Weighted fair queueing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from policies.ordering import Ordering
from policies.ordering.weights import check_weights
from policies.prediction import LengthPredictor
from policies.prediction.moving_average import MovingAverage
from policies.views import RequestView


@dataclass(slots=True)
class WeightedFairQueueing(Ordering):
    """Serve by virtual finishing time: a tenant's requests are stamped in turn, each by its cost over the weight.

    Self-clocked: virtual time is the stamp of the request admitted last. The cost of a request is its prompt and its
    predicted output.

    Source: Demers, Keshav and Shenker, SIGCOMM 1989; self-clocked Golestani, INFOCOM 1994.
    """

    hears_admitted: ClassVar[bool] = True
    hears_ended: ClassVar[bool] = True
    keyed_by: ClassVar[Mapping[str, str]] = {"weights": "tenant"}
    weights: Mapping[str, float] = field(default_factory=dict)
    predictor: LengthPredictor = field(default_factory=MovingAverage)
    _virtual_time: float = field(default=0.0, init=False, repr=False)
    _last_stamp: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _stamps: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The stamp; a preempted request keeps its own."""
        if request.preemptions and request.number in self._stamps:
            return (self._stamps[request.number],)
        cost = request.prompt_tokens + self.predictor.output_tokens(request)
        start = max(self._virtual_time, self._last_stamp.get(request.tenant, 0.0))
        stamp = start + cost / self.weights.get(request.tenant, 1.0)
        self._last_stamp[request.tenant] = self._stamps[request.number] = stamp
        return (stamp,)

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Move virtual time on."""
        self._virtual_time = max(self._virtual_time, self._stamps[request.number])

    def ended(self, request: RequestView) -> None:
        """Forget the stamp."""
        self._stamps.pop(request.number, None)

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)
