"""What one tenant sends, another never notices."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.memory import build_memory
from simcore.build.memory_plan import MemoryPlan
from simcore.build.retention import with_retention
from simcore.core.clock import NS_PER_S
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.hardware import load_accelerator
from simcore.memory import KVBlockManager, KVPartitions
from simcore.memory.partitions import divide_blocks
from simcore.models import load_model
from simcore.scenario import parse_scenario

BLOCK_SIZE = 4
MODEL = "smollm2-135m"


@dataclass
class StoppedClock:
    """Stands where it is put."""

    now_ns: int = 0


def memory_of(prefix_cache, num_gpu_blocks=13, clock=None, **memory):
    scenario = parse_scenario(
        {
            "model": MODEL,
            "cluster": {"accelerator": "l4"},
            "workload": {
                "requests": 1,
                "arrivals": {"name": "constant", "rate_per_s": 1},
                "prompt_tokens": {"name": "fixed", "tokens": 1},
                "output_tokens": {"name": "fixed", "tokens": 1},
            },
            "memory": {
                "num_gpu_blocks": num_gpu_blocks,
                "block_size_tokens": BLOCK_SIZE,
                "prefix_caching": True,
                "prefix_cache": prefix_cache,
                **memory,
            },
        }
    )
    spec = with_retention(load_model(MODEL), scenario.memory.retention, BLOCK_SIZE)
    plan = MemoryPlan.of(scenario, spec, load_accelerator("l4"), shares_content=True)
    return build_memory(scenario, spec, plan, True, clock or StoppedClock())


def request_of(number, tenant, documents):
    prompt = [Run(100 * document, tokens) for document, tokens in documents]
    tokens = sum(run.tokens for run in prompt)
    return Request(number, 0, tokens, tenant=tenant, content=Content(prompt, 10**6 * (number + 1)))


class Replayed:
    """Requests that come, decode, give way and leave as they are told; what each found, or whether it was refused."""

    def __init__(self, memory):
        self.memory, self.running, self.waiting, self.found = memory, [], [], {}

    def do(self, number, action, tenant, documents, place):
        if action == "arrive":
            self.admit(number, request_of(number, tenant, documents))
            return
        among = self.waiting if action == "return" else self.running
        own = [request for request in among if request.tenant == tenant]
        if not own:
            return
        request = own[place % len(own)]
        if action == "decode":
            self.decode(number, request)
            return
        among.remove(request)
        if action == "return":
            self.admit(number, request)
            return
        self.memory.release(request, comes_back=action == "preempt")
        if action == "preempt":
            request.computed_tokens = 0
            self.waiting.append(request)

    def admit(self, number, request):
        cached, shared = self.memory.cached_prefix(request)
        tokens = request.tokens_to_compute
        if self.memory.most_blocks(tokens) - shared > self.memory.free_for(request):
            self.found[number] = None
            self.memory.forget(request)
            return
        self.found[number] = cached
        self.memory.admit(request, cached, tokens - cached)
        request.computed_tokens = tokens
        self.memory.slide(request, cached)
        self.memory.computed(request)
        self.running.append(request)
        self.memory.check([(each, each.computed_tokens) for each in self.running])

    def decode(self, number, request):
        """Compute another token, unless memory for it is refused."""
        blocks = self.memory.blocks_to_grow(request.computed_tokens, 1)
        if blocks > self.memory.free_for(request):
            self.found[number] = None
            return
        self.memory.extend(request, blocks)
        request.known_output_tokens += 1
        request.computed_tokens += 1
        self.memory.slide(request, request.computed_tokens - 1)

    def all_found(self, tenant):
        """What a request of the tenant would find of everything that was ever said, and the blocks it could take."""
        probes = [request_of(10**4 + place, tenant, [(place, 40)]) for place in range(3)]
        return [(self.memory.cached_prefix(probe), self.memory.free_for(probe)) for probe in probes]


documents = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=3)
actions = ["arrive", "arrive", "leave", "decode", "preempt", "return"]
steps = st.lists(
    st.tuples(st.sampled_from(actions), st.sampled_from("abbc"), documents, st.integers(0, 3)), max_size=40
)
KINDS = [
    ({}, {}),
    ({"index": "radix"}, {}),
    ({"expires_after_s": 3.0}, {}),
    ({"eviction": {"name": "cost-aware"}, "share_between_tenants": True}, {}),
    ({"eviction": {"name": "lfu"}}, {"retention": {"window_tokens": 6, "sink_tokens": 0}}),
]


@pytest.mark.parametrize(("cache", "memory"), KINDS)
@settings(max_examples=40, deadline=None)
@given(sequence=steps)
def test_with_shares_nothing_that_others_do_changes_what_one_finds_keeps_or_is_refused(cache, memory, sequence):
    """Whatever others hold, cache and give up: the same calls at the same times have the same answers, to the end."""
    clock = StoppedClock()
    shares = cache | {"tenant_shares": {"a": 0.3, "b": 0.4}}
    both, alone = (Replayed(memory_of(shares, 25, clock, **memory)) for _ in range(2))
    for number, step in enumerate(sequence):
        clock.now_ns = number * NS_PER_S
        both.do(number, *step)
        if step[1] == "b":
            alone.do(number, *step)
            assert both.all_found("b") == alone.all_found("b")
    assert {number: both.found[number] for number in alone.found} == alone.found


@settings(max_examples=100, deadline=None)
@given(steps)
def test_without_shares_tenants_still_find_nothing_of_each_other(sequence):
    service, computed = Replayed(memory_of({}, 200)), {"a": set(), "b": set(), "c": set()}
    for number, (action, tenant, prompt, place) in enumerate(sequence):
        service.do(number, action, tenant, prompt, place)
        if action == "arrive":
            request = request_of(number, tenant, prompt)
            said = [run.first + index for run in request.content.prompt for index in range(run.tokens)]
            prefixes = {tuple(said[:end]) for end in range(BLOCK_SIZE, len(said) + 1, BLOCK_SIZE)}
            if service.found[number]:
                assert tuple(said[: service.found[number]]) in computed[tenant]
            computed[tenant] |= prefixes


@pytest.mark.parametrize(
    ("prefix_cache", "found"), [({}, 0), ({"share_between_tenants": True}, 16), ({"salt": "one"}, 0)]
)
def test_tenants_share_only_if_allowed(prefix_cache, found):
    service = Replayed(memory_of(prefix_cache, 100))
    service.do(0, "arrive", "a", [(0, 20)], 0)
    service.do(1, "arrive", "b", [(0, 20)], 0)
    service.do(2, "arrive", "a", [(0, 20)], 0)
    assert service.found == {0: 0, 1: found, 2: 16}


def test_shares_are_rounded_down_and_the_rest_is_everybody_elses():
    assert divide_blocks(101, {"a": 0.5, "b": 0.25}) == ({"a": 50, "b": 25}, 26)
    memory = memory_of({"tenant_shares": {"a": 0.5}})
    assert isinstance(memory, KVPartitions)
    requests = [request_of(number, tenant, [(0, 4)]) for number, tenant in enumerate("ab")]
    assert [memory.total_for(request) for request in requests] == [6, 6]
    assert isinstance(memory_of({}), KVBlockManager)
