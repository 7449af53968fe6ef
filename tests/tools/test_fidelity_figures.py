import pytest

pytest.importorskip("matplotlib")

from dashboard.fidelity_wording import shown
from fidelity.case import Case, Outcome
from fidelity.replay import Replayed, replay
from fidelity.request_runs import read_request_run
from fidelity.table import Share
from fidelity.tables import TPOT, TTFT
from tests.fidelity.request_run_folder import write_run
from tools.fidelity_figures import draw_bias, draw_replay, draw_scatter


def outcome(concurrency, error):
    measured = {TTFT: 0.1 * concurrency, TPOT: 0.01 * concurrency}
    case = Case("case", {"model": "m", "concurrency": str(concurrency)}, {}, measured)
    return Outcome(case, {key: value * (1 + error) for key, value in measured.items()}, {})


@pytest.mark.parametrize("draw", [draw_scatter, draw_bias])
def test_the_same_data_give_the_same_file(tmp_path, draw):
    outcomes = [outcome(4, 0.1), outcome(8, -0.3), outcome(8, -0.1)]
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        draw(outcomes, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert b"mean TTFT" in files[0].read_bytes() or b"<path" in files[0].read_bytes()


def test_a_replayed_run_is_drawn(tmp_path):
    found = replay(read_request_run(write_run(tmp_path / "run")))
    assert isinstance(found, Replayed)
    draw_replay(found, tmp_path / "run.svg")
    assert (tmp_path / "run.svg").stat().st_size > 10_000


def test_cells_are_short():
    cells = [None, Share(0.1234), Share(-0.5, signed=True), 0.0123456, 12, "text"]
    assert [shown(cell) for cell in cells] == ["-", "12.3%", "-50.0%", "0.01235", "12", "text"]
