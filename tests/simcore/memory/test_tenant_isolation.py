"""What one tenant sends, another never notices."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.content import Content, Run
from simcore.hardware import load_accelerator
from simcore.memory import KVBlockManager, KVPartitions
from simcore.memory.building import build_memory
from simcore.memory.partitions import divide_blocks
from simcore.memory.plan import MemoryPlan
from simcore.models import load_model
from simcore.request import Request
from simcore.scenario import parse_scenario

BLOCK_SIZE = 4
MODEL = "smollm2-135m"


def memory_of(prefix_cache, num_gpu_blocks=13):
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
            },
        }
    )
    spec = load_model(MODEL)
    plan = MemoryPlan.of(scenario, spec, load_accelerator("l4"), shares_content=True)
    return build_memory(scenario, spec, plan, True, lambda: 0.0)


def request_of(number, tenant, documents):
    prompt = [Run(100 * document, tokens) for document, tokens in documents]
    tokens = sum(run.tokens for run in prompt)
    return Request(number, 0, tokens, tenant=tenant, content=Content(prompt, 10**6 * (number + 1)))


class Replayed:
    """Requests that come and stay until they are told to leave; what each found when it was admitted."""

    def __init__(self, memory):
        self.memory, self.running, self.found = memory, [], {}

    def do(self, number, action, tenant, documents, place):
        if action == "leave":
            own = [request for request in self.running if request.tenant == tenant]
            if own:
                request = own[place % len(own)]
                self.running.remove(request)
                self.memory.release(request)
            return
        request = request_of(number, tenant, documents)
        cached, shared = self.memory.cached_prefix(request)
        if self.memory.blocks_for(request.prompt_tokens) - shared > self.memory.free_for(request):
            self.found[number] = None
            return
        self.found[number] = cached
        self.memory.admit(request, cached, request.prompt_tokens - cached)
        request.computed_tokens = request.prompt_tokens
        self.running.append(request)
        self.memory.check([(each, each.computed_tokens) for each in self.running])


documents = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), min_size=1, max_size=3)
steps = st.lists(
    st.tuples(st.sampled_from(["arrive", "arrive", "leave"]), st.sampled_from("ab"), documents, st.integers(0, 3)),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_with_shares_nothing_that_one_does_changes_what_the_other_finds(sequence):
    both = Replayed(memory_of({"tenant_shares": {"a": 0.5, "b": 0.5}}))
    alone = Replayed(memory_of({"tenant_shares": {"a": 0.5, "b": 0.5}}))
    for number, step in enumerate(sequence):
        both.do(number, *step)
        if step[1] == "b":
            alone.do(number, *step)
    assert {number: both.found[number] for number in alone.found} == alone.found


@settings(max_examples=100, deadline=None)
@given(steps)
def test_without_shares_tenants_still_find_nothing_of_each_other(sequence):
    service, computed = Replayed(memory_of({}, 200)), {"a": set(), "b": set()}
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
