"""Random sessions, drawn all at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simcore.workload.batch import RequestBatch
from simcore.workload.contents import exclusive_sums
from simcore.workload.durations import DurationDistribution
from simcore.workload.growing_prompts import grown
from simcore.workload.pairs import LengthPairs
from simcore.workload.prompts import Prompts, PromptWriter
from simcore.workload.senders import Senders
from simcore.workload.session_shapes import SessionShape, Shape
from simcore.workload.sessions import FollowUps
from simcore.workload.streams import random_stream

_REQUESTS_AT_A_TIME = 65_536


@dataclass(frozen=True, slots=True)
class SyntheticSessions:
    """What random sessions are made of; each has one sender, and its first prompt begins as ``prompts`` says."""

    shape: SessionShape
    think_time: DurationDistribution
    lengths: LengthPairs
    prompts: Prompts
    senders: Senders | None
    seed: int

    def shapes(self, requests: int | None = None, sessions: int | None = None) -> Shape:
        """Of so many requests, the last session cut short, or of so many sessions; one of the two is given."""
        draw, at_a_time = self.shape.start(self.seed), max(1, _REQUESTS_AT_A_TIME // self.shape.most_requests)
        drawn: list[Shape] = []
        drawn_requests = drawn_sessions = 0
        while drawn_requests < requests if requests is not None else drawn_sessions < (sessions or 0):
            drawn.append(draw(at_a_time))  # always as many, so that what is drawn does not depend on where it ends
            drawn_requests += len(drawn[-1])
            drawn_sessions += at_a_time
        shape = _one_after_another(drawn, at_a_time)
        return shape.up_to(int(np.searchsorted(shape.session, sessions or 0)) if requests is None else requests)

    def requests(self, shape: Shape, beginnings: RequestBatch) -> tuple[RequestBatch, FollowUps]:
        """The requests of all sessions, which begin as ``beginnings`` arrive; the lengths of these are not used."""
        if self.senders is not None:
            beginnings = self.senders.start(self.seed)(beginnings)
        prompt_tokens, output_tokens = self.lengths.start(self.seed)(len(shape))
        requests = replace(
            beginnings.at(shape.session), prompt_tokens=prompt_tokens, output_tokens=output_tokens
        ).cut_to_limits()
        thought_s = self.think_time.quantile(random_stream(self.seed, "think_time").random(len(shape)))
        delay_ns = np.where(shape.level > 0, np.rint(thought_s * 1e9), 0).astype(np.int64)
        follow_ups = FollowUps.of_pairs(shape.before, shape.after, delay_ns, shape.session)
        own = PromptWriter(self.prompts.parts, self.seed).write(requests, follow_ups.begins)
        return grown(own, shape), follow_ups


def _one_after_another(shapes: Sequence[Shape], sessions_each: int) -> Shape:
    starts = exclusive_sums(np.array([len(shape) for shape in shapes], dtype=np.int64))[:-1].tolist()
    parts = list(zip(shapes, starts, strict=True))
    return Shape(
        np.concatenate([shape.session + place * sessions_each for place, shape in enumerate(shapes)]),
        np.concatenate([np.where(shape.level > 0, shape.parent + start, shape.parent) for shape, start in parts]),
        np.concatenate([shape.level for shape in shapes]),
        np.concatenate([shape.before + start for shape, start in parts]),
        np.concatenate([shape.after + start for shape, start in parts]),
        np.concatenate([shape.joined for shape in shapes]),
    )
