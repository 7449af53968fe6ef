"""What a simulated service has and a live engine does not is refused."""

import pytest

from live.engine.setup import check_scenario
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError

ONE = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": {
        "requests": 2,
        "arrivals": {"name": "at-once"},
        "prompt_tokens": {"name": "fixed", "tokens": 10},
        "output_tokens": {"name": "fixed", "tokens": 5},
    },
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"faults": [{"name": "crash", "replica": 0, "at_s": 1.0}]}, r"faults is \['crash'\], expected none on a live"),
        ({"adapters": {"count": 3}}, r"adapters\.count is 3, expected none on a live engine"),
    ],
)
def test_faults_and_adapters_are_of_simulations(changes, message, tmp_path):
    check_scenario(Simulation.prepare(ONE, tmp_path))
    with pytest.raises(InputError, match=message):
        check_scenario(Simulation.prepare(ONE | changes, tmp_path))
