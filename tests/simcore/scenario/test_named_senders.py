"""A tenant or a level that no request has is a slip wherever it is set apart."""

from pathlib import Path

import pytest

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError

KIND = {
    "requests": 40,
    "arrivals": {"name": "poisson", "rate_per_s": 50.0},
    "prompt_tokens": {"name": "fixed", "tokens": 60},
    "output_tokens": {"name": "fixed", "tokens": 5},
}
SHARES = [{"name": "search", "share": 0.999999, "priority": 2}, {"name": "chat", "share": 0.000001, "priority": 7}]
TRACE = "arrival_s,prompt_tokens,output_tokens,team,urgency\n0.0,9,2,search,2\n0.5,9,2,chat,7\n"
COLUMNS = {"tenant": "team", "priority": "urgency"}
STREAMS = [KIND | {"tenant": "search", "priority": 2}, KIND | {"tenants": [SHARES[1] | {"share": 1.0}]}]


def workloads(folder):
    (folder / "requests.csv").write_text(TRACE)
    return {
        "shares": KIND | {"tenants": SHARES},
        "closed loop": KIND | {"tenants": SHARES, "arrivals": {"name": "closed-loop", "concurrency": 2}},
        "trace": {"trace": "requests.csv", "format": "csv", "columns": COLUMNS},
        "streams": {"streams": STREAMS},
    }


def prepare(workload, folder, **scheduler):
    memory = scheduler.pop("memory", {})
    base = {"model": "smollm2-135m", "cluster": {"accelerator": "h100-sxm"}}
    return Simulation.prepare(
        {**base, "memory": memory, "scheduler": scheduler, "workload": workloads(folder)[workload]}, Path(folder)
    )


def ordering(name, **parameters):
    return {"ordering": {"name": name, **parameters}}


BY_TENANT = [
    ("scheduler.ordering.weights", lambda tenants: ordering("vtc", weights=tenants)),
    ("scheduler.ordering.weights", lambda tenants: ordering("drr", weights=tenants)),
    ("scheduler.ordering.weights", lambda tenants: ordering("drf", weights=tenants)),
    ("scheduler.ordering.weights", lambda tenants: ordering("wfq", weights=tenants)),
    (
        "scheduler.ordering.inner.weights",
        lambda tenants: ordering("two-level", inner={"name": "wfq", "weights": tenants}),
    ),
    ("scheduler.ordering.credits", lambda tenants: ordering("credit", credits=tenants)),
    (
        "memory.prefix_cache.tenant_shares",
        lambda tenants: {"memory": {"prefix_caching": True, "prefix_cache": {"tenant_shares": tenants}}},
    ),
]
BY_LEVEL = [
    ("scheduler.ordering.ttft_s_by_priority", lambda levels: ordering("edf", ttft_s_by_priority=levels)),
    ("scheduler.ordering.minimum_share", lambda levels: ordering("priority", minimum_share=levels)),
]


@pytest.mark.parametrize(("field", "scheduler"), BY_TENANT)
@pytest.mark.parametrize("workload", ["shares", "closed loop", "trace", "streams"])
def test_an_unknown_tenant_is_refused_with_the_nearest(workload, field, scheduler, tmp_path):
    prepare(workload, tmp_path, **scheduler({"search": 0.5, "chat": 0.25}))
    with pytest.raises(InputError) as refused:
        prepare(workload, tmp_path, **scheduler({"serach": 0.5}))
    said = (
        f"{field}.serach is an unknown tenant, expected a tenant of the workload: chat, search. Did you mean 'search'?"
    )
    assert str(refused.value) == said


@pytest.mark.parametrize(("field", "scheduler"), BY_LEVEL)
@pytest.mark.parametrize("workload", ["shares", "closed loop", "trace", "streams"])
def test_an_unknown_level_is_refused(workload, field, scheduler, tmp_path):
    prepare(workload, tmp_path, **scheduler({2: 0.5, 7: 0.25}))
    with pytest.raises(InputError) as refused:
        prepare(workload, tmp_path, **scheduler({3: 0.5}))
    assert str(refused.value) == f"{field}.3 is an unknown level, expected a level of the workload: 2, 7."


def test_blocks_reserved_from_nobody_are_refused(tmp_path):
    prepare("shares", tmp_path, preemption={"reserved_blocks": {0: 8, 7: 8}})
    with pytest.raises(InputError, match=r"reserved_blocks\.8 is of no use, expected a level up to 7"):
        prepare("shares", tmp_path, preemption={"reserved_blocks": {8: 8}})


def test_where_nobody_is_named_no_tenant_is_known(tmp_path):
    with pytest.raises(InputError, match=r"weights\.chat is an unknown tenant, expected a tenant of .*nobody is named"):
        Simulation.prepare(
            {
                "model": "smollm2-135m",
                "cluster": {"accelerator": "h100-sxm"},
                "scheduler": ordering("vtc", weights={"chat": 2.0}),
                "workload": KIND,
            },
            tmp_path,
        )
