"""Forward passes of a model with made-up weights, timed operation by operation.

A pass has decodes alike, or one prompt chunk. Operations stand in it as they do in service: each layer has weights and
keys of its own, so that a whole model passes through the caches between two uses of the same.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from live.measuring.clocks import MeasuringClock
from live.measuring.stopwatch import EventStopwatch, HostStopwatch
from live.measuring.timed_backend import REST, Launch, TimedBackend
from live.model.config import DecoderConfig
from live.paging.step_batch import SequenceInput
from live.runner import ModelRunner
from live.sampling.parameters import SamplingParameters
from live.sampling.sampler import Row, sample_rows

_GREEDY = SamplingParameters(temperature=0.0)
_DISTURBED = 0.03
"""The share of a pass in which its thread did not run, from which on something else did."""


@dataclass(frozen=True, slots=True)
class PassShape:
    """``decodes`` requests over ``context`` tokens each, the new one included, and chunks of (tokens, prefix)."""

    decodes: int = 0
    context: int = 0
    chunks: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PassTimes:
    """One pass: seconds of a launch of each kind and shape in the mean, how many there were, and of what is none.

    ``disturbed``: the thread was kept from running meanwhile.
    """

    seconds: dict[Launch, float]
    counts: dict[Launch, int]
    rest_s: float
    total_s: float
    disturbed: bool


class PassProbe:
    """Runs passes on the weights, and over the keys and values, of a runner.

    On a CPU they are timed by ``clock``, the host's by default.
    """

    def __init__(self, runner: ModelRunner, clock: MeasuringClock | None = None) -> None:
        self._on_host = runner.device.type == "cpu"
        self._clock = clock or MeasuringClock()
        self._watch = HostStopwatch(self._clock.now_ns) if self._on_host else EventStopwatch()
        self._backend = TimedBackend(runner.backend, self._watch, runner.config)
        self._runner = ModelRunner(runner.weights, runner.kv, self._backend, runner.max_context_tokens)
        self._block_size = runner.kv.block_size
        self._order = np.random.default_rng(0).permutation(runner.kv.blocks).astype(np.int32)
        self._turn = 0

    @property
    def on_host(self) -> bool:
        """Whether the CPU computes."""
        return self._on_host

    @property
    def tokens(self) -> int:
        """Tokens of keys and values that a pass may have in all."""
        return len(self._order) * self._block_size

    def run(self, shape: PassShape) -> PassTimes:
        """One pass, from making its inputs to choosing its tokens."""
        inputs = self._inputs(shape)
        if self._on_host:
            self._clock.settle()
        began_ns, worked_ns = time.perf_counter_ns(), time.thread_time_ns()
        self._watch.start()
        logits = self._runner.run(inputs)
        self._watch.lap(REST)
        sample_rows(logits, [Row(_GREEDY, each.position + len(each.tokens)) for each in inputs])
        self._watch.lap(self._backend.elementwise("sampling", len(inputs)))
        laps = self._watch.laps()
        wall_ns, worked_ns = time.perf_counter_ns() - began_ns, time.thread_time_ns() - worked_ns
        total: dict[Launch, float] = {}
        counts: dict[Launch, int] = {}
        rest_s = 0.0
        for label, nanoseconds in laps:
            if isinstance(label, Launch):
                total[label] = total.get(label, 0.0) + nanoseconds * 1e-9 / label.parts
                counts[label] = counts.get(label, 0) + 1
            elif label == REST:
                rest_s += nanoseconds * 1e-9
        seconds = {label: value / counts[label] for label, value in total.items()}
        disturbed = self._on_host and self._clock.waits_count and wall_ns - worked_ns > _DISTURBED * wall_ns
        return PassTimes(seconds, counts, rest_s, sum(ns for _, ns in laps) * 1e-9, disturbed)

    def _inputs(self, shape: PassShape) -> list[SequenceInput]:
        """Sequences over blocks of their own, others from pass to pass."""
        self._turn += 1
        order = np.roll(self._order, 7919 * self._turn)
        rows = [(1, shape.context - 1)] * shape.decodes + list(shape.chunks)
        inputs, place = [], 0
        for number, (tokens, before) in enumerate(rows):
            blocks = -(-(tokens + before) // self._block_size)
            made_up = (np.arange(tokens) * 97 + 31 * number + self._turn) % self._runner.config.spec.vocabulary_size
            inputs.append(SequenceInput(made_up, before, order[place : place + blocks]))
            place += blocks
        return inputs


def with_layers(config: DecoderConfig, number_bytes: int, most_bytes: float) -> DecoderConfig:
    """The model, or as many of its layers as memory is for; those of a kind go together."""
    spec = config.spec
    outside = 2 * spec.vocabulary_size * spec.hidden_size * number_bytes
    if len(spec.layer_groups) != 1:
        return config
    group = spec.layer_groups[0]
    form, block = config.attention, getattr(group.feed_forward, "intermediate_size", 4 * spec.hidden_size)
    width = 2 * (form.query_heads + form.kv_heads) * form.head_dim + 3 * block
    fitting = int((most_bytes - outside) // (width * spec.hidden_size * number_bytes))
    if fitting >= group.count:
        return config
    layers = replace(group, count=max(fitting, 2))
    return replace(config, spec=replace(spec, layer_groups=(layers,), layer_order=()))
