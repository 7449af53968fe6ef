"""The live engine's machine as calibration sees it: candidates are forward passes of the target models."""

from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.measuring.device import Candidate, KernelPoint, Reading
from calibrate.samples import SHAPE_COLUMNS
from live.measuring.passes import PassProbe, PassShape, PassTimes
from live.measuring.timed_backend import Launch

_STEP = 1.6
"""How much greater the next size of a candidate is, at the least."""
_COARSE = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that steps of a model have: decodes, tokens of prompts, and context."""

    decodes: int
    prompt_tokens: int
    context: int


class LiveDevice:
    """Passes of several models, each with its probe and the limits of its steps; ``kinds`` are those to measure."""

    def __init__(self, probes: dict[str, tuple[PassProbe, Limits]], kinds: frozenset[str]) -> None:
        self._probes, self._kinds = probes, kinds
        self._shapes: dict[str, tuple[str, PassShape]] = {}

    def candidates(self) -> Sequence[Candidate]:
        """Decodes by number and context, and chunks by tokens and what is before them, of each model."""
        found: list[Candidate] = []
        for model, (probe, limits) in self._probes.items():
            # What a small pass of each kind launches tells what any launches: only the numbers differ.
            decodes, chunk = probe.run(PassShape(decodes=2, context=5)), probe.run(PassShape(chunks=((3, 4),)))
            batches, contexts = sizes(1, limits.decodes), sizes(16, limits.context)
            for batch in batches:
                for context in contexts:
                    if batch * (context + 16) <= probe.tokens:
                        shape = PassShape(decodes=batch, context=context)
                        kernels = self._kernels(
                            decodes, {"tokens": {2: batch}, "batch": {2: batch}, "context": {5: context}}
                        )
                        coarse = batch in spread(batches) and context in spread(contexts)
                        found.append(self._add(f"{model}: {batch} x {context}", model, shape, kernels, coarse))
            chunks, prefixes = sizes(2, limits.prompt_tokens), [0, *sizes(16, limits.context)]
            for tokens in chunks:
                for prefix in prefixes:
                    if tokens + prefix <= min(limits.context, probe.tokens):
                        shape = PassShape(chunks=((tokens, prefix),))
                        kernels = self._kernels(chunk, {"tokens": {3: tokens}, "prefix": {4: prefix}})
                        coarse = tokens in spread(chunks) and prefix in spread(prefixes)
                        found.append(self._add(f"{model}: {tokens} @ {prefix}", model, shape, kernels, coarse))
        return found

    def read(self, candidate: Candidate) -> Reading:
        """One pass."""
        model, shape = self._shapes[candidate.name]
        return self._reading(self._probes[model][0].run(shape))

    def _add(self, name: str, model: str, shape: PassShape, kernels: dict[KernelPoint, int], coarse: bool) -> Candidate:
        self._shapes[name] = model, shape
        return Candidate(name, kernels, coarse=coarse)

    def _kernels(self, times: PassTimes, sizes: dict[str, dict[int, int]]) -> dict[KernelPoint, int]:
        """The kernels of a small pass with other sizes put in the place of its own."""
        found = {}
        for launch, count in times.counts.items():
            if launch.kind in self._kinds:
                shape = tuple((name, _other(sizes.get(name, {}), value)) for name, value in launch.shape)
                found[point_of(Launch(launch.kind, shape))] = count
        return found

    def _reading(self, times: PassTimes) -> Reading:
        own = {point_of(launch): seconds for launch, seconds in times.seconds.items() if launch.kind in self._kinds}
        return Reading(own, times.total_s, times.rest_s, times.disturbed)


def point_of(launch: Launch) -> KernelPoint:
    """The same, with the columns of its kind in their order."""
    shape = dict(launch.shape)
    return KernelPoint(launch.kind, tuple(shape[name] for name in SHAPE_COLUMNS[launch.kind]))


def _other(sizes: dict[int, int], value: str | int) -> str | int:
    return sizes.get(value, value) if isinstance(value, int) else value


def sizes(least: int, most: int) -> list[int]:
    """Numbers from the least to the most, each about ``_STEP`` times the one before; small ones all."""
    found, value = [], float(least)
    while value < most:
        found.append(round(value))
        value = max(value * _STEP, value + 1)
    return list(dict.fromkeys([*found, most]))


def spread(values: Sequence[int]) -> set[int]:
    """The first, the last, and what lies evenly between."""
    last = len(values) - 1
    return {values[round(place * last / (_COARSE - 1))] for place in range(_COARSE)} if last else set(values)
