"""The scheduler against recorded decisions of a real one (vLLM V1), step by step."""

import json
from collections import defaultdict

import pytest

from policies.batching.chunked_prefill import ChunkedPrefill
from policies.ordering.fcfs import FirstComeFirstServed
from policies.preemption.latest import Latest
from simcore.memory.block_manager import KVBlockManager
from simcore.request import Request
from simcore.scheduling.scheduler import Scheduler

KINDS = (
    "steady",
    "burst",
    "few-slots",
    "capped-prefill",
    "long-prompts",
    "kv-pressure",
    "kv-pressure-no-reserve",
)


def replay(recording: dict):
    """Yield what our scheduler does in each step, in the form of the recording."""
    config = recording["config"]
    memory = KVBlockManager(config["num_blocks"] - 1, config["block_size"])
    batching = ChunkedPrefill(
        config["max_num_batched_tokens"],
        config["max_num_seqs"],
        config["long_prefill_token_threshold"] or None,
    )
    scheduler = Scheduler(
        FirstComeFirstServed(), batching, Latest(), memory, reserve_whole_prompt=config["reserve_full_isl"]
    )
    arrivals, output_tokens = defaultdict(list), {}
    for entry in recording["requests"]:
        prompt_tokens = sum(count for _, count in entry["prompt"])
        arrivals[entry["arrive_step"]].append(Request(entry["id"], entry["arrive_step"], prompt_tokens))
        output_tokens[entry["id"]] = entry["output"]
    step = -1
    while True:
        step += 1
        for request in arrivals.pop(step, ()):
            scheduler.submit(request, step)
        plan = scheduler.plan(step)
        scheduled = list(scheduler.scheduled(plan))
        tokens = {str(request.number): tokens for request, tokens in scheduled}
        decoding = [request for request, _ in scheduled if request.pool is not None]
        if plan.decoding:
            scheduler.commit_decodes(plan, 1)
        for request in scheduler.commit_chunks(plan):
            request.known_output_tokens += 1
            if request.known_output_tokens == output_tokens[request.number]:
                decoding.append(request)
            else:
                scheduler.start_decoding(request)
        finished = [r for r, _ in scheduled if r in decoding and r.generated_tokens == output_tokens[r.number]]
        for request in finished:
            scheduler.finish(request)
        scheduler.check_invariants()
        yield {
            "scheduled": tokens,
            "preempted": [request.number for request in plan.preempted],
            "finished": [request.number for request in finished],
            "free_blocks_after": memory.free_blocks,
        }


@pytest.mark.parametrize("name", [f"{kind}-{run}" for kind in KINDS for run in (1, 2)])
def test_every_decision_equals_the_recorded_one(name, shared_data):
    recording = json.loads((shared_data.parent / "oracle" / f"{name}.json").read_text())
    ours = replay(recording)
    for number, step in enumerate(recording["steps"]):
        decided = next(ours)
        expected = {key: step[key] for key in decided}
        assert decided == expected, f"step {number}"
        assert list(decided["scheduled"]) == list(expected["scheduled"]), f"order in step {number}"
