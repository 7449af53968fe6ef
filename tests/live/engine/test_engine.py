"""The engine as callers see it, over a model that takes no time and finds all that was put in memory."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from live.engine.engine import CANCELLED, Engine
from live.engine.setup import LiveSetup
from live.paging.step_batch import SequenceInput
from live.sampling.parameters import SamplingParameters
from simcore.build.simulation import Simulation
from simcore.core.errors import CapacityError, InputError
from tests.live.engine.fake_model import VOCABULARY, FakeRunner, ManualTime, TokenMemory
from tests.live.engine.test_same_decisions import document

GREEDY = SamplingParameters(temperature=0.0)
DRAWN = SamplingParameters(temperature=1.0, seed=5)


class QuickRunner(FakeRunner):
    """The fake model as a runner that an engine takes."""

    max_context_tokens = 400

    def __init__(self, blocks: int, block_size: int, ends: tuple[int, ...], checked: bool) -> None:
        super().__init__(ManualTime(), TokenMemory(blocks, block_size, 4000))
        self.config = SimpleNamespace(spec=SimpleNamespace(vocabulary_size=VOCABULARY), end_tokens=ends)
        self.checked = checked

    def check(self, sequences: Sequence[SequenceInput]) -> None:
        if self.checked:
            super().check(sequences)

    def row(self, sequence: SequenceInput) -> torch.Tensor:
        """The likeliest next token is one more than the last."""
        row = torch.zeros(VOCABULARY)
        row[(int(sequence.tokens[-1]) + 1) % VOCABULARY] = 3.0
        return row


def engine_of(ends: tuple[int, ...] = (), checked: bool = True, tokenizer: Any = None, **settings: Any) -> Engine:
    simulation = Simulation.prepare({"engine": "servetwin-live", **document(**settings)}, Path())
    section = simulation.scenario.memory
    runner = QuickRunner(section.num_gpu_blocks or 0, section.block_size_tokens, ends, checked)
    engine = Engine(LiveSetup(simulation, cast(Any, runner), torch.device("cpu")), tokenizer=tokenizer)
    runner.replica = engine.replica
    return engine


@pytest.fixture
def engine() -> Iterator[Engine]:
    with engine_of() as engine:
        yield engine
        check_nothing_is_left(engine)


def check_nothing_is_left(engine: Engine) -> None:
    memory = engine.replica.scheduler.memory
    assert memory.free_blocks == memory.total_blocks
    assert not engine.replica.live.ends.sequences
    assert not engine._open


def counted(first: int, tokens: int) -> list[int]:
    return [(first + place) % VOCABULARY for place in range(tokens)]


def test_outputs_and_their_pieces(engine: Engine) -> None:
    ((output,),) = engine.generate([[1, 2, 3]], GREEDY, max_tokens=5)
    assert (output.tokens, output.finish_reason) == (counted(4, 5), "length")
    pieces = list(engine.submit([1, 2, 3], GREEDY, max_tokens=5))
    assert [piece.token for piece in pieces] == counted(4, 5)
    assert [piece.finish_reason for piece in pieces] == [""] * 4 + ["length"]


def test_pieces_come_to_an_event_loop(engine: Engine) -> None:
    async def tokens(first: int) -> list[int]:
        return [piece.token async for piece in engine.submit([first], GREEDY, max_tokens=4)]

    async def both() -> list[list[int]]:
        return list(await asyncio.gather(tokens(10), tokens(20)))

    assert asyncio.run(both()) == [counted(11, 4), counted(21, 4)]


def test_end_tokens_end_outputs_unless_they_are_to_be_ignored() -> None:
    with engine_of(ends=(7,)) as engine:
        ((output,),) = engine.generate([[4]], GREEDY, max_tokens=20)
        assert (output.tokens, output.finish_reason) == ([5, 6, 7], "stop")
        (ignoring,) = engine.submit([4], GREEDY, max_tokens=20, ignore_end=True).wait()
        assert ignoring.tokens == counted(5, 20)
        check_nothing_is_left(engine)


class Letters:
    """A tokenizer of one letter a token."""

    end_tokens: tuple[int, ...] = ()

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(ord("a") + token % 26) for token in tokens)

    def encode(self, text: str) -> list[int]:
        return [ord(letter) - ord("a") for letter in text]


@pytest.mark.parametrize(
    ("stops", "said", "tokens"),
    [(("ghi",), "def", 6), (("zz", "hi", "g"), "def", 4), (("hx",), "defghijk", 8)],
)
def test_stop_strings_end_outputs_before_them(stops: tuple[str, ...], said: str, tokens: int) -> None:
    with engine_of(tokenizer=Letters()) as engine:
        how = SamplingParameters(temperature=0.0, stop_strings=stops)
        pieces = list(engine.submit("abc", how, max_tokens=8))
        ((output,),) = engine.generate(["abc"], how, max_tokens=8)
        check_nothing_is_left(engine)
    assert (output.text, len(output.tokens)) == (said, tokens)
    assert "".join(piece.text for piece in pieces) == said
    assert output.finish_reason == ("length" if tokens == 8 else "stop")


def test_logprobs_are_told_of_those_who_ask(engine: Engine) -> None:
    asked = SamplingParameters(temperature=0.0, logprobs=2)
    ((output,), (other,)) = (engine.generate([[1]], how, max_tokens=2)[0] for how in (asked, GREEDY))
    assert [likeliest[0][0] for likeliest in output.likeliest] == output.tokens
    assert len(output.logprobs) == 2
    assert not other.logprobs


@pytest.mark.parametrize("blocks", [400, 34])
def test_outputs_of_one_request_differ_and_do_not_depend_on_room(blocks: int) -> None:
    """With little memory siblings are queued, or preempted after they began."""
    prompts = [[first, 2, 3, 4, 5, 6, 7, 8, 9] for first in range(8)]
    with engine_of(blocks=blocks) as engine:
        answers = engine.generate(prompts, DRAWN, max_tokens=12, n=3)
        alone = engine.generate(prompts, DRAWN, max_tokens=12)
        check_nothing_is_left(engine)
    assert [answer[0].tokens for answer in answers] == [answer[0].tokens for answer in alone]
    assert all(len({tuple(output.tokens) for output in answer}) == 3 for answer in answers)
    assert reference(prompts) == [[output.tokens for output in answer] for answer in answers]


def reference(prompts: list[list[int]]) -> list[list[list[int]]]:
    with engine_of(blocks=2000, checked=False) as engine:
        answers = engine.generate(prompts, DRAWN, max_tokens=12, n=3)
    return [[output.tokens for output in answer] for answer in answers]


def test_outputs_of_one_token_end_at_once(engine: Engine) -> None:
    (outputs,) = engine.generate([[1, 2]], DRAWN, max_tokens=1, n=4)
    assert [len(output.tokens) for output in outputs] == [1] * 4
    assert {output.finish_reason for output in outputs} == {"length"}


def test_a_cancelled_request_frees_what_it_has(engine: Engine) -> None:
    under_way = engine.submit([1, 2, 3], GREEDY, max_tokens=150, n=2)
    next(iter(under_way))
    under_way.cancel()
    outputs = under_way.wait(timeout_s=20)
    assert {output.finish_reason for output in outputs} <= {CANCELLED, "length"}
    under_way.cancel()
    assert engine.generate([[1]], GREEDY, max_tokens=1)[0][0].tokens == [2]


def test_a_request_that_can_never_fit_is_turned_away_with_a_reason() -> None:
    with engine_of(blocks=40) as engine:
        (outputs,) = engine.generate([[1] * 300], GREEDY, max_tokens=2, n=2)
        assert [output.finish_reason for output in outputs] == ["needs more KV blocks than a replica has"] * 2
        check_nothing_is_left(engine)


@pytest.mark.parametrize(
    ("prompt", "more", "said"),
    [
        ([], {}, "prompt is [], expected at least one token."),
        ([1, 500], {}, "prompt is 500, expected tokens from 0 to 100."),
        ("text", {}, "prompt is 'text', expected a sequence of tokens, as there is no tokenizer."),
        ([1], {"max_tokens": 0}, "max_tokens is 0, expected a whole number of at least 1."),
        ([1], {"n": 0}, "n is 0, expected a whole number of at least 1."),
        ([1], {"max_tokens": 400}, "expected at most 400 tokens together."),
    ],
)
def test_wrong_requests(engine: Engine, prompt: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        engine.submit(prompt, GREEDY, **more)
    assert said in str(error.value)


def test_whoever_waits_is_told_what_ended_the_engine() -> None:
    engine = engine_of()
    engine.replica.live._runner.run = out_of_memory  # type: ignore[method-assign]
    with pytest.raises(CapacityError, match="lower it"):
        engine.generate([[1]], GREEDY, max_tokens=2)
    with pytest.raises(CapacityError, match="lower it"):
        engine.submit([1], GREEDY, max_tokens=2).wait(timeout_s=20)


def out_of_memory(sequences: object) -> torch.Tensor:
    raise CapacityError("Device memory does not suffice; lower it.")


def test_ten_thousand_requests_leave_nothing_behind() -> None:
    """Once the prefix cache is full, memory stays as it is."""
    batching = {"name": "chunked-prefill", "max_batched_tokens": 400, "max_running_requests": 100}
    prompts = [[number % 50, number % 7, 1] for number in range(500)]
    with engine_of(blocks=300, checked=False, batching=batching) as engine:
        for _ in range(14):
            engine.generate(prompts, GREEDY, max_tokens=2)
        gc.collect()
        tracemalloc.start()
        engine.generate(prompts, GREEDY, max_tokens=2)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5):
            engine.generate(prompts, GREEDY, max_tokens=2)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        check_nothing_is_left(engine)
    assert after - before < 150_000
