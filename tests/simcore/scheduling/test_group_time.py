"""The time that groups get of the steps: all of it is given away, and a minimum share of it holds."""

from pathlib import Path

import pytest

from simcore.build.simulation import Simulation
from simcore.scheduling.grouped_queue import GroupedQueue
from simcore.scheduling.step_time import StepTime


@pytest.fixture
def queues(monkeypatch):
    """Every grouped queue of a run, with the time that its steps took."""
    found = {}
    took = GroupedQueue.took

    def noted(self, plan, elapsed_ns):
        found[self] = found.get(self, 0) + elapsed_ns
        took(self, plan, elapsed_ns)

    monkeypatch.setattr(GroupedQueue, "took", noted)
    return found


def run(ordering, end_s=None, blocks=200, fast_forward=True, rate_per_s=400.0, requests=400, **batching):
    """Levels of unlike requests: those of 0 are long prompts with short answers, those of 1 the other way round."""
    lengths = {0: (600, 5), 1: (20, 120)}
    streams = [
        {
            "tenant": f"level {level}",
            "priority": level,
            "requests": requests,
            "arrivals": {"name": "poisson", "rate_per_s": rate_per_s},
            "prompt_tokens": {"name": "uniform", "low": prompt // 2, "high": prompt},
            "output_tokens": {"name": "uniform", "low": output // 2, "high": output},
        }
        for level, (prompt, output) in lengths.items()
    ]
    document = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "h100-sxm"},
        # with asynchronous decisions, slots of those who have ended stand idle for a step
        "host": {"async_scheduling": False},
        "memory": {"num_gpu_blocks": blocks},
        "scheduler": {"ordering": ordering, "batching": {"name": "chunked-prefill", **batching}},
        "workload": {"streams": streams},
        "measurement": {} if end_s is None else {"end_s": end_s},
    }
    return Simulation.prepare(document, Path()).run(fast_forward=fast_forward)


@pytest.mark.parametrize(
    "batching", [{}, {"max_batched_tokens": 20, "max_running_requests": 40}], ids=["wide", "tight"]
)
@pytest.mark.parametrize("fast_forward", [True, False])
def test_all_time_is_given_away(queues, batching, fast_forward):
    steps = run({"name": "priority"}, blocks=120, fast_forward=fast_forward, **batching).steps
    ((queue, elapsed_ns),) = queues.items()
    assert elapsed_ns / 1e9 == pytest.approx((steps["end_s"] - steps["start_s"]).sum())
    assert sum(group.service_s for group in queue.groups.values()) == pytest.approx(elapsed_ns / 1e9)
    assert all(group.service_s > 0 for group in queue.groups.values())


@pytest.mark.parametrize("share", [0.25, 0.5])
@pytest.mark.parametrize(
    "ordering",
    [
        lambda share: {"name": "priority", "minimum_share": {1: share}},
        lambda share: {"name": "hybrid", "lowest_share": share},
    ],
    ids=["priority", "hybrid"],
)
def test_a_level_gets_its_minimum_share_of_time_and_not_much_more(queues, ordering, share):
    for stated in (share, 0.0):
        run(ordering(stated), end_s=0.5, rate_per_s=1e6, requests=2000, max_running_requests=8)
    with_share, without = ({name: group.service_s for name, group in queue.groups.items()} for queue in queues)
    assert with_share["1"] / sum(with_share.values()) == pytest.approx(share, abs=0.1)
    assert without.get("1", 0.0) < 0.05 * sum(without.values())


def test_like_steps_are_added_before_they_are_divided():
    """So that one jump of many steps comes to the same as these one by one, to the bit."""
    jumped, stepped = StepTime(), StepTime()
    for time in (jumped, stepped):
        time.add(0.1)
    jumped.decoded(7 * 1_000_003, 3)
    for _ in range(7):
        stepped.decoded(1_000_003, 3)
    assert jumped.per_member_s == stepped.per_member_s == pytest.approx(0.1 + 7 * 1_000_003e-9 / 3)
    for time in (jumped, stepped):
        time.decoded(500, 4)
    assert jumped.per_member_s == stepped.per_member_s
