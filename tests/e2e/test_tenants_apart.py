"""What one tenant notices of another: on replicas of its own nothing at all."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import ServetwinError
from tests.e2e.scenarios import merged, prepare, run, synthetic

SHARED = {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 500}, "among": 3}]}
GOLD = synthetic({"name": "poisson", "rate_per_s": 6.0}, (10, 400), (5, 80), requests=40) | SHARED | {"tenant": "gold"}


def scenario(others, **sections):
    """Gold's requests, which never change, beside those of others."""
    base = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "l4", "replicas": 2, "routing": {"name": "dedicated", "tenants": {"gold": 1}}},
        "memory": {"num_gpu_blocks": 150},
        "host": {"per_prompt_token_s": 0.0},  # one API server tokenises the prompts of all replicas
        "workload": {"streams": [GOLD, *others]},
    }
    return merged(base, sections)


def of_gold(result):
    """Everything that the tables of a run say of gold's requests but their numbers."""
    requests = result.requests
    mine = requests["tenant"] == "gold"
    return {name: column[mine].tolist() for name, column in requests.items() if name != "request_id"}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    rate_per_s=st.sampled_from([200.0, 20.0, 1.0]),
    requests=st.integers(1, 120),
    among=st.integers(1, 4),
    shares=st.booleans(),
    mode=st.sampled_from(["recompute", "swap"]),
)
def test_on_replicas_of_its_own_a_tenant_notices_nothing(rate_per_s, requests, among, shares, mode, tmp_path_factory):
    folder = tmp_path_factory.mktemp("apart")
    prefix = [SHARED["prefix"][0] | {"among": among}]
    other = synthetic({"name": "poisson", "rate_per_s": rate_per_s}, (10, 900), (5, 200), requests=requests)
    cache = {"share_between_tenants": shares}
    changes = {"memory": {"prefix_cache": cache}, "scheduler": {"preemption": {"mode": mode}}}
    crowded = run(scenario([other | {"tenant": "other", "prefix": prefix}], **changes), folder, check=True)
    alone = run(scenario([], **changes), folder)
    assert of_gold(crowded) == of_gold(alone)
    assert sum(of_gold(alone)["cached_tokens"]) > 0
    assert set(crowded.requests["replica"][crowded.requests["tenant"] == "other"].tolist()) <= {1, -1}


def test_on_a_shared_replica_a_share_of_memory_does_not_keep_time_apart(tmp_path):
    """Blocks are apart; steps are not: whoever shares a forward pass waits for all of it."""
    other = synthetic({"name": "poisson", "rate_per_s": 40.0}, (10, 900), (5, 200), requests=150)
    changes = {"memory": {"num_gpu_blocks": 300, "prefix_cache": {"tenant_shares": {"gold": 0.5}}}}
    base = scenario([other | {"tenant": "other"}], **changes)
    base["cluster"] = {"accelerator": "l4"}
    crowded, alone = (
        of_gold(run(base | {"workload": {"streams": streams}}, tmp_path, check=True))
        for streams in (base["workload"]["streams"], [GOLD])
    )
    assert crowded["state"] == alone["state"] == ["finished"] * 40
    assert sum(crowded["end_s"]) > sum(alone["end_s"])


def test_replicas_that_are_not_there_cannot_be_given_away(tmp_path):
    expected = "cluster.routing.tenants takes 1 replicas, expected at most 0 of 1"
    with pytest.raises(ServetwinError, match=expected):
        prepare(scenario([], cluster={"replicas": 1}), tmp_path)
    with pytest.raises(ServetwinError, match=r"cluster.routing.tenants.gould is an unknown tenant.*Did you mean"):
        prepare(scenario([], cluster={"replicas": 3, "routing": {"tenants": {"gould": 1}}}), tmp_path)
