"""The figure of what tenants are served."""

import numpy as np

import servetwin
from dashboard.figures.service import tenant_service
from dashboard.report import render_report

SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4"},
    "workload": {
        "requests": 60,
        "arrivals": {"name": "poisson", "rate_per_s": 20},
        "prompt_tokens": {"name": "fixed", "tokens": 100},
        "output_tokens": {"name": "fixed", "tokens": 11},
        "tenants": [{"name": "many", "share": 0.8}, {"name": "few", "share": 0.2}],
    },
}


def test_a_curve_for_each_tenant_ends_at_what_it_got():
    result = servetwin.simulate(SCENARIO)
    figure = tenant_service(result.requests, result.summary["run"]["simulated_s"])
    for curve in figure.data:
        requests = int((result.requests["tenant"] == curve.name).sum())
        assert np.isclose(curve.y[-1], requests * (100 + 2 * 11))
    assert [curve.name for curve in figure.data] == ["many", "few"]
    assert "Service over time" in render_report(result, "tenants")


def test_one_tenant_needs_no_figure():
    workload = {key: value for key, value in SCENARIO["workload"].items() if key != "tenants"}
    result = servetwin.simulate(SCENARIO | {"workload": workload})
    assert tenant_service(result.requests, 1.0) is None
    assert "Service over time" not in render_report(result, "one")
