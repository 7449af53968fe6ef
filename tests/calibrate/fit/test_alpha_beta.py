import numpy as np
import pytest

from calibrate.fit.alpha_beta import CollectiveSamples, FittedConstants, fit_constants, held_out_errors
from calibrate.ship_collectives import entries
from simcore.cost.collectives import alpha_beta_constants


def made_by(constants, operation="all_reduce", ranks=(2, 4, 8)):
    grid = [(count, size) for count in ranks for size in 2.0 ** np.arange(9, 30)]
    counts, sizes = (np.array(column) for column in zip(*grid, strict=True))
    empty = CollectiveSamples(operation, counts, sizes, np.full(len(grid), 450e9), np.ones(len(grid)))
    return CollectiveSamples(operation, counts, sizes, empty.link_bytes_per_s, constants.seconds(empty))


def test_constants_are_found_again():
    true = FittedConstants(launch_s=7e-6, step_s=8e-7, efficiency=0.7)
    found = fit_constants(made_by(true))
    assert found.launch_s == pytest.approx(true.launch_s, rel=1e-3)
    assert found.step_s == pytest.approx(true.step_s, rel=1e-3)
    assert found.efficiency == pytest.approx(true.efficiency, rel=1e-3)
    assert held_out_errors(made_by(true)).p90 < 1e-3


def test_a_step_that_cannot_be_told_from_the_launch_is_part_of_it():
    found = fit_constants(made_by(FittedConstants(7e-6, 1e-6, 0.7), "send_recv", ranks=(2,)))
    assert found.step_s == 0
    assert found.launch_s == pytest.approx(8e-6, rel=1e-3)


def test_what_is_shipped_is_what_is_fitted(shared_data):
    shipped = alpha_beta_constants()
    found = list(entries(shared_data / "profiles"))
    assert len(found) == len(shipped)
    for entry in found:
        constants = shipped[entry["topology"], entry["operation"]]
        for name in ("launch_s", "step_s", "efficiency"):
            assert entry[name] == pytest.approx(getattr(constants, name), rel=0.02, abs=1e-9)
