"""The step contract without simulation: a scheduler driven by an executor whose times and outputs nobody foresees."""

import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering.fcfs import FirstComeFirstServed
from policies.preemption.latest import Latest
from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory import KVBlockManager, KVRadixManager
from simcore.memory.link import Link
from simcore.memory.swap import SwapSpace
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.invariants import check_invariants
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.scheduling.swapping import Swapping

BLOCK_SIZE = 4
LONGEST = 60


class Engine:
    """An executor that keeps what it wrote into which slot, as a GPU would, and stops outputs when it likes."""

    def __init__(self, scheduler, draw):
        self.scheduler, self.draw = scheduler, draw
        self.slots = {}
        self.host = {}
        self.said = {}
        """The tokens of each request, prompt and output."""

    def execute(self, plan, start_ns, within_ns):
        """Copy, write, read back, sample."""
        self._copy(plan)
        tables = {}
        for request, new_tokens in self.scheduler.scheduled(plan):
            position, text = request.tokens_in_memory, self.said[request.number]
            table = tables[request.number] = list(self.scheduler.memory.block_table(request, new_tokens))
            for place in range(position, position + new_tokens):
                self.slots[self._slot(table, place)] = text[place]
        ended = []
        for request, new_tokens in self.scheduler.scheduled(plan):
            held, text = request.tokens_in_memory + new_tokens, self.said[request.number]
            read = [self.slots[self._slot(tables[request.number], place)] for place in range(held)]
            assert read == text[:held], "what a request wrote is not what it reads"
            if held == len(text):
                text.append((request.number, held))
                if self.draw.random() < 0.15 or len(text) >= LONGEST:
                    ended.append(request)
        return StepResult([self.draw.randrange(1, 10**9)], ended)

    def _copy(self, plan):
        for copy in plan.copies:
            self._put(copy.target, self._content(copy.source))
        for copy in plan.copies_out:
            self.host[copy.target] = self._content(copy.source)
        for copy in plan.copies_in:
            self._put(copy.target, self.host[copy.source])

    @staticmethod
    def _slot(table, place):
        return table[place // BLOCK_SIZE] * BLOCK_SIZE + place % BLOCK_SIZE

    def _content(self, block):
        return [self.slots.get(block * BLOCK_SIZE + offset) for offset in range(BLOCK_SIZE)]

    def _put(self, block, content):
        for offset, token in enumerate(content):
            self.slots[block * BLOCK_SIZE + offset] = token


def request_of(number, document, prompt_tokens):
    """A request whose prompt begins as those of all of its document do."""
    content = Content([Run(1000 * document, prompt_tokens)], 10**6 * (number + 1))
    return Request(number, number, prompt_tokens, LONGEST, content=content)


def scheduler_of(memory, mode):
    swapping = None
    if mode == "swap":
        swapping = Swapping(SwapSpace(12, 1, Link("in", 1e9, 0), Link("out", 1e9, 0)))
    batching = ChunkedPrefill(max_batched_tokens=24, max_running_requests=6)
    config = SchedulerConfig(FirstComeFirstServed(), batching, Latest(), preemption_mode=mode)
    return Scheduler(config, memory, swapping=swapping)


@pytest.mark.parametrize("mode", ["recompute", "swap"])
@pytest.mark.parametrize("manager", [KVBlockManager, KVRadixManager])
def test_everybody_ends_and_reads_what_was_written(manager, mode):
    counts = defaultdict(int)

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(seed=st.integers(0, 2**32), samples=st.integers(1, 3))
    def drive(seed, samples):
        draw = random.Random(seed)
        options = {"prefix_caching": True, "withdraw_uncomputed": True} if manager is KVBlockManager else {}
        scheduler = scheduler_of(manager(20, BLOCK_SIZE, **options), mode)
        engine = Engine(scheduler, draw)
        waiting = [request_of(number, draw.randrange(3), draw.randrange(1, 30)) for number in range(12)]
        now_ns, open_requests, wanted, numbers = 0, {}, {}, len(waiting)
        while waiting or open_requests:
            while waiting and (not open_requests or draw.random() < 0.5):
                request = waiting.pop()
                start = request.content.prompt[0].first
                engine.said[request.number] = [*range(start, start + request.prompt_tokens)]
                open_requests[request.number], wanted[request.number] = request, samples
                scheduler.submit(request, now_ns)
            if open_requests and draw.random() < 0.05:
                cancelled = draw.choice(list(open_requests.values()))
                scheduler.cancel(cancelled)
                del open_requests[cancelled.number]
                counts["cancelled"] += 1
            plan = scheduler.plan(now_ns)
            if plan.empty:
                check_invariants(scheduler.state)
                continue
            result = engine.execute(plan, now_ns, 0)
            now_ns += result.elapsed_ns
            done = scheduler.commit(plan, result, now_ns)
            for request in done.finished:
                open_requests.pop(request.number, None)
            for request in done.decoding:
                while wanted.get(request.number, 1) > 1:
                    child = request_of(numbers, 0, request.prompt_tokens)
                    child.content = Content(request.content.prompt, 10**6 * (numbers + 1))
                    if not scheduler.fork(request, child, now_ns):
                        counts["no room"] += 1
                        break
                    numbers, wanted[request.number] = numbers + 1, wanted[request.number] - 1
                    engine.said[child.number] = [*engine.said[request.number][:-1], (child.number, 0)]
                    open_requests[child.number] = child
                    counts["forked"] += 1
            counts["preempted"] += len(plan.preempted)
            counts["swapped"] += len(plan.swapped_in)
            counts["copied"] += len(plan.copies)
            check_invariants(scheduler.state)
        scheduler.plan(now_ns)
        assert scheduler.memory.used_blocks == 0
        assert scheduler.view.running_requests == scheduler.view.waiting_requests == 0

    drive()
    assert all(counts[kind] for kind in ("cancelled", "forked", "copied", "preempted")), dict(counts)
    assert bool(counts["swapped"]) == (mode == "swap")


def test_a_cancelled_request_that_ends_in_the_step_in_progress_is_no_lesson_for_policies():
    class Learning(ChunkedPrefill):
        hears_finished = True
        told: list[int] = []  # noqa: RUF012

        def finished(self, request, ttft_s, tpot_s):
            self.told.append(request.number)

    batching = Learning()
    scheduler = Scheduler(SchedulerConfig(FirstComeFirstServed(), batching, Latest()), KVBlockManager(20, BLOCK_SIZE))
    requests = [request_of(number, number, 5) for number in range(2)]
    for request in requests:
        scheduler.submit(request, 0)
    plan = scheduler.plan(0)
    scheduler.cancel(requests[0])
    scheduler.commit(plan, StepResult([10], requests), 10)
    assert batching.told == [1]
    assert scheduler.memory.used_blocks == 0


def test_policies_can_read_but_not_change_what_they_see():
    scheduler = scheduler_of(KVBlockManager(20, BLOCK_SIZE), "recompute")
    scheduler.submit(request_of(0, 0, 5), 0)
    seen = {}

    class Curious(ChunkedPrefill):
        filters_admission = True

        def limits(self, replica, now_s):
            seen["replica"] = replica
            return super().limits(replica, now_s)

        def accepts(self, request, running):
            seen["request"] = request
            return True

    config = SchedulerConfig(FirstComeFirstServed(), Curious(), Latest())
    scheduler.config = scheduler.state.config = config
    scheduler.plan(0)
    for view in seen.values():
        public = [name for name in dir(view) if not name.startswith("_")]
        assert public
        for name in public:
            value = getattr(view, name)
            assert value is None or isinstance(value, int | float | str) or callable(value), name
            with pytest.raises(AttributeError):
                setattr(view, name, 0)
        with pytest.raises(AttributeError):
            view.anything = 0
