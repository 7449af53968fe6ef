"""The live engine for callers: prompts in, tokens out, many at a time."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

from live.engine.generation import Generation, Output
from live.engine.replica import LiveReplica
from live.engine.sequence import CallersSequence, Sibling
from live.engine.setup import LiveSettings, LiveSetup
from live.engine.siblings import Siblings
from live.engine.step_times import StepTimes
from live.engine.wall_clock import WallClock
from live.opening import OpenModel
from live.sampling.parameters import SamplingParameters
from live.text.detokeniser import Detokeniser
from live.text.tokenizer import TextTokenizer
from simcore.core.content import Content, Run
from simcore.core.errors import InputError, Phrase, ServetwinError
from simcore.core.request import Request
from simcore.recording.recorder import Recorder

CANCELLED = "cancelled"
_NO_WORKLOAD = {
    "requests": 1,
    "arrivals": {"name": "constant", "rate_per_s": 1.0},
    "prompt_tokens": {"name": "fixed", "tokens": 1},
    "output_tokens": {"name": "fixed", "tokens": 1},
}
"""Stands in a scenario for callers, whose requests are not foretold."""
_STEPS_KEPT = 500
"""Whose times can be asked for; an engine may run for ever."""
_OUTPUT_BITS = 40
"""Identities of outputs lie above those of prompts, which are token ids."""

Prompt = str | Sequence[int]


@dataclass(slots=True)
class _Asked:
    """A request before it arrives, with its further outputs."""

    request: Request
    sequence: CallersSequence
    generation: Generation
    siblings: list[Sibling] = field(default_factory=list)

    @property
    def requests(self) -> list[Request]:
        return [self.request, *(sibling.request for sibling in self.siblings)]


class _LatestReason(Recorder):
    """Keeps no rows, since an engine may run for ever: only why the latest request was turned away."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""
        self.steps_run = _ignore

    def request_finished(self, request: Request, replica: int, end_ns: int, output_tokens: int) -> None:
        """Nothing is kept."""

    def request_rejected(self, request: Request, replica: int, now_ns: int, reason: str) -> None:
        """Keep the reason."""
        self.reason = reason

    def request_unfinished(self, request: Request, replica: int) -> None:
        """Nothing is kept."""


def _ignore(row: list[int]) -> None:
    """Keep no steps."""


class Engine:
    """Serves callers by a model and the policies of a scenario, whose workload, if it has one, plays no part.

    Requests may come from any thread; one thread of the engine's own does all the rest. Prompts are texts where there
    is a ``tokenizer``, else tokens. Raises ``ServetwinError`` as ``LiveSetup.prepare`` does.
    """

    def __init__(
        self,
        model: OpenModel | LiveSetup,
        scenario: Mapping[str, Any] | None = None,
        *,
        tokenizer: TextTokenizer | None = None,
        settings: LiveSettings | None = None,
        base_dir: Path = Path(),
    ) -> None:
        if isinstance(model, LiveSetup):
            self.setup = model
        else:
            document = {"model": model.config.spec.name, "engine": "servetwin-live", **(scenario or {})}
            self.setup = LiveSetup.prepare(model, {**document, "workload": _NO_WORKLOAD}, base_dir, settings)
        self.tokenizer = tokenizer
        self.clock = WallClock(stays_open=True)
        self._recorder = _LatestReason()
        cluster = self.setup.replica(self.clock, self._recorder)
        replica = cluster.replicas[0]
        assert isinstance(replica, LiveReplica)
        self.replica = replica
        replica.live.times = StepTimes(most=_STEPS_KEPT)
        self._router = self.setup.simulation.router(self.clock, self._recorder, cluster)
        Siblings(self.clock, replica)
        self._numbers = count()
        self._open: dict[Generation, _Asked] = {}
        self._failure: BaseException | None = None
        config = self.setup.runner.config
        self._ends = frozenset(config.end_tokens) | frozenset(tokenizer.end_tokens if tokenizer else ())
        self._thread = threading.Thread(target=self._run, name="servetwin-engine", daemon=True)
        self._thread.start()

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParameters | None = None,
        *,
        max_tokens: int = 64,
        n: int = 1,
    ) -> list[list[Output]]:
        """All outputs to all prompts, ``n`` each; raises as ``submit`` does."""
        under_way = [self.submit(prompt, sampling, max_tokens=max_tokens, n=n) for prompt in prompts]
        return [generation.wait() for generation in under_way]

    def submit(
        self,
        prompt: Prompt,
        sampling: SamplingParameters | None = None,
        *,
        max_tokens: int = 64,
        n: int = 1,
        tenant: str = "",
        priority: int = 0,
        ignore_end: bool = False,
    ) -> Generation:
        """Send a request now and return at once; what it is turned away for stands in its outputs.

        With ``ignore_end`` no token ends an output before ``max_tokens``. Raises ``InputError`` for values that cannot
        be, ``ServetwinError`` where the engine has ended.
        """
        asked = self._asked(prompt, sampling or SamplingParameters(), max_tokens, n, tenant, priority, ignore_end)
        self.clock.call(partial(self._arrive, asked))
        if self._failure is not None:
            asked.generation.fail(self._failure)
        return asked.generation

    def close(self) -> None:
        """End after the step in progress; what is under way is cut off."""
        self.clock.stop()
        self._thread.join()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _asked(
        self,
        prompt: Prompt,
        sampling: SamplingParameters,
        max_tokens: int,
        n: int,
        tenant: str,
        priority: int,
        ignore_end: bool,
    ) -> _Asked:
        tokens = self._tokens(prompt)
        longest = self.setup.runner.max_context_tokens
        if not max_tokens >= 1:
            raise InputError("max_tokens", max_tokens, "a whole number of at least 1")
        if len(tokens) + max_tokens > longest:
            said = Phrase(f"{len(tokens)} tokens long with an output of up to {max_tokens}")
            raise InputError("prompt", said, f"at most {longest} tokens together")
        if n < 1:
            raise InputError("n", n, "a whole number of at least 1")
        if sampling.stop_strings and self.tokenizer is None:
            raise InputError("stop_strings", sampling.stop_strings, "none without a tokenizer")
        generation = Generation(n, self._cancel)
        ends = frozenset() if ignore_end else self._ends
        runs = tuple(Run(token, 1) for token in tokens)
        made = []
        for branch in range(n):
            number = next(self._numbers)
            text = None if self.tokenizer is None else Detokeniser(self.tokenizer, sampling.stop_strings)
            sequence = CallersSequence(list(tokens), len(tokens), max_tokens, sampling, _nowhere, ends, branch, text)
            sequence.deliver = partial(generation.deliver, sequence)
            request = Request(number, 0, len(tokens), max_tokens, tenant, priority)
            request.content = Content(runs, (number + 1) << _OUTPUT_BITS)
            request.done = partial(self._ended, generation, sequence, request)
            made.append((request, sequence))
        (request, sequence), *others = made
        return _Asked(request, sequence, generation, [Sibling(*other) for other in others])

    def _tokens(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise InputError("prompt", prompt, "a sequence of tokens, as there is no tokenizer")
            tokens = self.tokenizer.encode(prompt)
        else:
            tokens = list(prompt)
        if not tokens:
            raise InputError("prompt", prompt, "at least one token")
        vocabulary = self.setup.runner.config.spec.vocabulary_size
        wrong = next((token for token in tokens if not 0 <= token < vocabulary), None)
        if wrong is not None:
            raise InputError("prompt", wrong, f"tokens from 0 to {vocabulary - 1}")
        return tokens

    def _arrive(self, asked: _Asked) -> None:
        """On the clock's thread: let the router have a request."""
        request, sequence, replica = asked.request, asked.sequence, self.replica
        self._open[asked.generation] = asked
        sequence.siblings = list(asked.siblings)
        replica.live.ends.sequences[request.number] = sequence
        for each in asked.requests:
            each.arrival_ns = self.clock.now_ns
        self._recorder.reason = ""
        self._router.receive(request, sequence.limit)
        if self._recorder.reason and request.number not in replica.requests.by_number:
            del replica.live.ends.sequences[request.number]
            for sibling in asked.siblings:
                self._ended(asked.generation, sibling.sequence, sibling.request, False)

    def _ended(self, generation: Generation, sequence: CallersSequence, request: Request, complete: bool) -> None:
        """On the clock's thread: one output is over."""
        reason = sequence.finish_reason if complete else self._recorder.reason or CANCELLED
        generation.end(sequence.branch, reason, request.cached_tokens)
        if all(output.finish_reason for output in generation.outputs):
            self._open.pop(generation, None)

    def _cancel(self, generation: Generation) -> None:
        self.clock.call(partial(self._give_up, generation))

    def _give_up(self, generation: Generation) -> None:
        asked = self._open.get(generation)
        for each in asked.requests if asked is not None else ():
            self.replica.cancel(each, CANCELLED)

    def _run(self) -> None:
        failure: BaseException = ServetwinError("The engine was closed.")
        try:
            self.clock.run()
        except BaseException as error:  # whatever it is, whoever waits must be told
            failure = error
        self._failure = failure
        for generation in list(self._open):
            generation.fail(failure)


def _nowhere(*anything: object) -> None:
    """Where tokens go before there is a caller: there are none yet."""
