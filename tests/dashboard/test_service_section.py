"""The service over time in the report."""

import numpy as np

from dashboard.figures.regimes import service_over_time
from dashboard.service_section import service_section
from simcore.build.simulation import Simulation
from simcore.core.result import Result

SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {
        "accelerator": "l4",
        "scaling": {
            "policy": {"name": "schedule", "replicas": {0: 1, 2: 2}, "period_s": 100.0},
            "max_replicas": 2,
            "interval_s": 1.0,
            "start": {"boot_s": 1.0, "compile_s": 0.0, "warm_up_s": 0.0},
        },
    },
    "workload": {
        "requests": 60,
        "arrivals": {"name": "constant", "rate_per_s": 10.0},
        "prompt_tokens": {"name": "fixed", "tokens": 50},
        "output_tokens": {"name": "fixed", "tokens": 20},
    },
    "slo": {"ttft_s": {"p99": 1.0}},
}


def test_it_tells_of_budget_starts_and_cost(tmp_path):
    result = Simulation.prepare(SCENARIO, tmp_path).run()
    page = service_section(result)
    for words in ("Error budget spent", "Time in green", "Cold starts", "Replica-seconds starting", "Cost, USD"):
        assert words in page
    assert "Replica-seconds asleep" not in page


def test_without_objectives_and_scaling_there_is_none(tmp_path):
    plain = SCENARIO | {"cluster": {"accelerator": "l4"}, "slo": {}}
    assert service_section(Simulation.prepare(plain, tmp_path).run()) == ""
    earlier = Result({}, {"slo": {"ttft_s.p99": {}}}, {}, {}, {})
    assert service_section(earlier) == ""


def test_the_figure_is_shaded_by_regime():
    service = {
        "start_s": np.array([0.0, 1.0, 2.0, 3.0]),
        "end_s": np.array([1.0, 2.0, 3.0, 4.0]),
        "regime": np.array(["green", "green", "red", ""]),
        "replicas": np.ones(4),
        "slo_attainment": np.array([1.0, 1.0, 0.2, np.nan]),
        "burn_rate": np.array([0.0, 0.0, 80.0, np.nan]),
    }
    figure = service_over_time(service)
    spans = [(shape.x0, shape.x1) for shape in figure.layout.shapes]
    assert spans == [(0.0, 2.0)] * 3 + [(2.0, 3.0)] * 3
