"""The engine's greedy tokens are those of a plain pass, whatever batching, memory and policies do to a request."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from live.engine.engine import Engine
from live.engine.generation import Output
from live.engine.setup import LiveSettings, LiveSetup, live_document
from live.model.plain import plain_logits
from live.opening import OpenModel
from live.paging.kv_tensors import KVTensors, kv_block_bytes
from live.runner import ModelRunner, make_runner
from live.sampling.parameters import SamplingParameters
from live.text.tokenizer import TextTokenizer, tokenizer_of_gguf
from policies.registry import built_in_names
from simcore.build.simulation import Simulation
from tests.live.engine.prompts import PROMPTS

NEW_TOKENS = 4
GREEDY = SamplingParameters(temperature=0.0)
WORKLOAD = {
    "requests": 1,
    "arrivals": {"name": "constant", "rate_per_s": 1.0},
    "prompt_tokens": {"name": "fixed", "tokens": 1},
    "output_tokens": {"name": "fixed", "tokens": 1},
}


@pytest.fixture(scope="module")
def loaded(smollm2: OpenModel) -> ModelRunner:
    torch.set_num_threads(1)
    return make_runner(smollm2, blocks=1)


@pytest.fixture(scope="module")
def tokenizer(smollm2: OpenModel) -> TextTokenizer:
    assert smollm2.gguf is not None
    return tokenizer_of_gguf(smollm2.gguf)


@pytest.fixture(scope="module")
def prompts(tokenizer: TextTokenizer) -> list[list[int]]:
    return [tokenizer.encode(prompt) for prompt in PROMPTS]


@contextmanager
def engine_of(
    runner: ModelRunner,
    tokenizer: TextTokenizer | None = None,
    blocks: int = 200,
    block_size: int = 16,
    **sections: Any,
) -> Iterator[Engine]:
    """An engine over weights that are loaded already."""
    memory = {"num_gpu_blocks": blocks, "block_size_tokens": block_size, **sections.pop("memory", {})}
    document = {"model": "any", "engine": "servetwin-live", "workload": WORKLOAD, "memory": memory, **sections}
    simulation = Simulation.prepare(live_document(document, runner.config, LiveSettings()), Path(), runner.config.spec)
    host_blocks = 0
    if simulation.scenario.scheduler.preemption.mode == "swap":
        block_bytes = kv_block_bytes(runner.config, block_size, torch.float32)
        host_blocks = int(simulation.scenario.memory.swap_space_gb * 1e9) // block_bytes
    kv = KVTensors(runner.config, blocks, block_size, torch.float32, runner.device, host_blocks)
    paged = ModelRunner(runner.weights, kv, runner.backend, simulation.max_context_tokens)
    with Engine(LiveSetup(simulation, paged, runner.device), tokenizer=tokenizer) as engine:
        yield engine
        memory = engine.replica.scheduler.memory
        assert memory.free_blocks == memory.total_blocks
        assert not engine.replica.live.ends.sequences


def scheduling(batching: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    return {"scheduler": {"batching": batching or {"max_running_requests": 16}, **others}}


def tokens_of(answers: Sequence[Sequence[Output]]) -> list[list[int]]:
    return [answer[0].tokens for answer in answers]


@pytest.fixture(scope="module")
def expected(loaded: ModelRunner, prompts: list[list[int]]) -> list[list[int]]:
    """What one batch of all says, once it is certain that a plain pass prefers each of the tokens."""
    with engine_of(loaded, **scheduling()) as engine:
        found = tokens_of(engine.generate(prompts, GREEDY, max_tokens=NEW_TOKENS))
    for prompt, tokens in zip(prompts, found, strict=True):
        assert tokens == plain_logits(loaded.weights, [*prompt, *tokens])[len(prompt) - 1 : -1].argmax(1).tolist()
    return found


@pytest.mark.parametrize(
    ("most_running", "block_size", "count"),
    [(1, 16, 4), (16, 1, len(PROMPTS)), pytest.param(1, 16, len(PROMPTS), marks=pytest.mark.long)],
)
def test_batches_and_block_sizes_change_nothing(
    loaded: ModelRunner,
    prompts: list[list[int]],
    expected: list[list[int]],
    most_running: int,
    block_size: int,
    count: int,
) -> None:
    batching = {"max_running_requests": most_running}
    with engine_of(loaded, blocks=3200 // block_size, block_size=block_size, **scheduling(batching)) as engine:
        assert tokens_of(engine.generate(prompts[:count], GREEDY, max_tokens=NEW_TOKENS)) == expected[:count]


@pytest.mark.parametrize("budget", [16, 512])
def test_chunks_change_nothing(
    loaded: ModelRunner, prompts: list[list[int]], expected: list[list[int]], budget: int
) -> None:
    batching = {"max_running_requests": 8, "max_batched_tokens": budget}
    with engine_of(loaded, **scheduling(batching)) as engine:
        assert tokens_of(engine.generate(prompts, GREEDY, max_tokens=NEW_TOKENS)) == expected


@pytest.mark.parametrize("mode", ["recompute", "swap"])
def test_preemption_changes_nothing(
    loaded: ModelRunner, prompts: list[list[int]], expected: list[list[int]], mode: str
) -> None:
    """Blocks of two tokens, so few that running requests push each other out."""
    preemption = scheduling({"max_running_requests": 8}, preemption={"mode": mode})
    memory = {"prefix_caching": False, "swap_space_gb": 0.05}
    with engine_of(loaded, blocks=36, block_size=2, memory=memory, **preemption) as engine:
        engine.replica.plans = []
        assert tokens_of(engine.generate(prompts, GREEDY, max_tokens=NEW_TOKENS)) == expected
        swapped_out = sum(len(plan.swapped_out) for plan in engine.replica.plans)
        swapped_in = sum(len(plan.swapped_in) for plan in engine.replica.plans)
        assert sum(len(plan.preempted) for plan in engine.replica.plans) > 0
        assert (swapped_out > 0 and swapped_in == swapped_out) if mode == "swap" else not swapped_out


def test_blocks_that_are_found_are_not_computed_and_change_nothing(
    loaded: ModelRunner, prompts: list[list[int]], expected: list[list[int]]
) -> None:
    with engine_of(loaded, blocks=400, block_size=2, **scheduling()) as engine:
        engine.generate(prompts, GREEDY, max_tokens=1)
        computed = int(engine.replica.live.times.columns()["chunk_tokens"].sum())
        answers = engine.generate(prompts, GREEDY, max_tokens=NEW_TOKENS)
        more = int(engine.replica.live.times.columns()["chunk_tokens"].sum()) - computed
    assert tokens_of(answers) == expected
    cached = [answer[0].cached_tokens for answer in answers]
    assert all(len(prompt) - 2 <= found < len(prompt) for prompt, found in zip(prompts, cached, strict=True))
    assert more == computed - sum(cached)


def test_three_outputs_of_a_request_share_its_prompt_and_each_is_what_it_would_be_alone(
    loaded: ModelRunner, prompts: list[list[int]], expected: list[list[int]]
) -> None:
    drawn = SamplingParameters(temperature=1.0, seed=7)
    with engine_of(loaded, **scheduling()) as engine:
        answers = engine.generate(prompts[:6], GREEDY, max_tokens=NEW_TOKENS, n=3)
        columns = engine.replica.live.times.columns()
        assert columns["chunk_tokens"].sum() == sum(map(len, prompts[:6]))
        assert columns["moved_blocks"].sum() == 2 * sum(len(tokens) > 1 for tokens in expected[:6])
        together = engine.generate(prompts[:1], drawn, max_tokens=NEW_TOKENS, n=3)[0]
        (alone,) = engine.generate(prompts[:1], drawn, max_tokens=NEW_TOKENS)[0]
    assert [[output.tokens for output in answer] for answer in answers] == [[tokens] * 3 for tokens in expected[:6]]
    assert together[0].tokens == alone.tokens
    assert len({tuple(output.tokens) for output in together}) == 3


LIVE_BATCHING = [name for name in built_in_names("batching") if name != "prefill-turns"]
"""``prefill-turns`` needs a radix index, and a live engine has a hash index."""


@pytest.mark.parametrize("name", LIVE_BATCHING)
def test_every_batching_policy_changes_nothing(
    loaded: ModelRunner, prompts: list[list[int]], expected: list[list[int]], name: str
) -> None:
    with engine_of(loaded, **scheduling({"name": name})) as engine:
        found = tokens_of(engine.generate(prompts[:4], GREEDY, max_tokens=3))
    assert found == [tokens[:3] for tokens in expected[:4]]


def test_the_capital_of_france(loaded: ModelRunner, tokenizer: TextTokenizer) -> None:
    with engine_of(loaded, tokenizer) as engine:
        ((output,),) = engine.generate(["The capital of France is"], GREEDY, max_tokens=2)
    assert output.text.startswith(" Paris")
