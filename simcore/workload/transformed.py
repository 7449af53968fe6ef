"""A workload whose requests are completed, step by step, as they are consumed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from simcore.workload.batch import OpenLoop, RequestBatch

Transform = Callable[[RequestBatch], RequestBatch]
"""Given the next requests of a workload, the same with something added; successive calls continue one sequence."""


class Transformation(Protocol):
    """What is added to requests: who sends them, what they contain."""

    def start(self, seed: int) -> Transform:
        """The sequence that belongs to ``seed``, from its beginning."""


@dataclass(frozen=True, slots=True)
class TransformedOpenLoop:
    """The requests of a workload after all ``steps``; ``samples`` in a row are one request to whoever sent it."""

    workload: OpenLoop
    steps: tuple[Transformation, ...]
    seed: int
    samples: int = 1

    @property
    def notices(self) -> tuple[str, ...]:
        """What a user should know of the workload."""
        return getattr(self.workload, "notices", ())

    def batches(self) -> Iterator[RequestBatch]:
        """The requests in order of arrival."""
        transforms = [step.start(self.seed) for step in self.steps]
        for requests in self.workload.batches():
            for transform in transforms:
                requests = transform(requests)
            yield requests
