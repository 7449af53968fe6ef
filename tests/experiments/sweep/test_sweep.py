"""Cells are what the design says, run once, found again, and the same table comes of them whoever ran them."""

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest

from experiments.runners import ThisProcess, runner_of
from experiments.sweep.cell_run import CellTask, perform
from experiments.sweep.design import cells_of
from experiments.sweep.execution import CELLS, TABLE, carry_out
from experiments.sweep.rates import rate_of
from simcore.core.errors import FileError, InputError, ServetwinError

DOCUMENT = {
    "model": "qwen2.5-0.5b",
    "cluster": {"accelerator": "l4"},
    "workload": {
        "requests": 40,
        "arrivals": {"name": "poisson", "rate_per_s": 10.0},
        "prompt_tokens": {"name": "fixed", "tokens": 100},
        "output_tokens": {"name": "fixed", "tokens": 5},
    },
    "slo": {"ttft_s": {"p99": 0.2}},
}
AXES = {"cluster.replicas": [1, 2], "scheduler.ordering": ["fcfs", "sjf"]}


def test_a_grid_has_every_combination_and_every_seed():
    cells = cells_of(DOCUMENT, Path(), AXES, seeds=2)
    assert len(cells) == 8
    assert cells[1].setting == {"cluster.replicas": 1, "scheduler.ordering": "fcfs", "seed": 1}
    assert cells[-1].document["scheduler"]["ordering"]["name"] == "sjf"
    assert len({cell.fingerprint for cell in cells}) == 8


def test_a_random_design_draws_each_part_of_a_range_once_and_is_the_same_again():
    axes = {"cluster.replicas": ["1..8"], "workload.arrivals.rate_per_s": ["log:0.5..50.5"], "model": ["qwen3-4b"]}
    cells = cells_of(DOCUMENT, Path(), axes, points=8)
    assert sorted(cell.setting["cluster.replicas"] for cell in cells) == list(range(1, 9))
    rates = [cell.setting["workload.arrivals.rate_per_s"] for cell in cells]
    assert all(0.5 <= rate <= 50.5 for rate in rates)
    assert sum(rate < 5 for rate in rates) == 4
    assert [cell.setting for cell in cells_of(DOCUMENT, Path(), axes, points=8)] == [cell.setting for cell in cells]


@pytest.mark.parametrize(
    ("axes", "options", "error"),
    [
        ({}, {}, "--vary is missing"),
        ({"cluster.replicas": ["1..4"]}, {}, "--random N"),
        ({"cluster.replicas": ["4..1"]}, {"points": 3}, "LOW..HIGH"),
        ({"cluster.replicas": [1, 1]}, {}, "each value once"),
        ({"cluster.replicsa": [1, 2]}, {}, "Did you mean .replicas"),
        ({"cluster.replicas": [1, 2]}, {"points": 0}, "--random"),
        ({"seed": [1, 2]}, {}, "--seeds"),
    ],
)
def test_what_is_wrong_with_a_design_is_told_before_anything_runs(axes, options, error):
    with pytest.raises(InputError, match=error):
        cells_of(DOCUMENT, Path(), axes, **options)


def test_processes_make_the_same_bytes_and_finished_cells_are_found_again(tmp_path):
    cells = cells_of(DOCUMENT, Path(), AXES)
    rows, there = carry_out(cells, tmp_path / "one", ThisProcess())
    assert (len(rows), there) == (4, 0)
    runner = runner_of(2)
    try:
        carry_out(cells, tmp_path / "two", runner)
    finally:
        runner.close()
    assert (tmp_path / "one" / TABLE).read_bytes() == (tmp_path / "two" / TABLE).read_bytes()
    more = cells_of(DOCUMENT, Path(), AXES | {"cluster.replicas": [1, 2, 3]})
    assert carry_out(more, tmp_path / "one", ThisProcess())[1] == 4
    table = parquet.read_table(tmp_path / "one" / TABLE)
    assert table.num_rows == 6
    assert table["cluster.replicas"].to_pylist() == [1, 1, 2, 2, 3, 3]
    assert min(table["ttft_s.p99"].to_pylist()) > 0


def test_a_cell_that_was_kept_has_the_bytes_of_one_that_just_ran(tmp_path):
    cells = cells_of(DOCUMENT, Path(), AXES)
    carry_out(cells, tmp_path, ThisProcess())
    fresh = (tmp_path / TABLE).read_bytes()
    assert carry_out(cells, tmp_path, ThisProcess())[1] == len(cells)
    assert (tmp_path / TABLE).read_bytes() == fresh
    assert parquet.read_table(tmp_path / TABLE).schema.field("itl_s.min").type == pyarrow.float64()


def test_a_line_that_was_cut_off_is_dropped(tmp_path):
    cells = cells_of(DOCUMENT, Path(), AXES)
    carry_out(cells, tmp_path, ThisProcess())
    whole = (tmp_path / TABLE).read_bytes()
    text = (tmp_path / CELLS).read_bytes()
    (tmp_path / CELLS).write_bytes(text[:-10])
    assert carry_out(cells, tmp_path, ThisProcess())[1] == 3
    assert (tmp_path / TABLE).read_bytes() == whole


SWEEP = """
from pathlib import Path
from experiments.runners import ThisProcess
from experiments.sweep.design import cells_of
from experiments.sweep.execution import carry_out
cells = cells_of({document!r}, Path(), {{"cluster.replicas": list(range(1, 13))}})
carry_out(cells, Path({folder!r}), ThisProcess(), progress=lambda cell: print("done", flush=True))
"""


def test_a_sweep_that_was_killed_goes_on_where_it_was(tmp_path):
    code = SWEEP.format(document=DOCUMENT, folder=str(tmp_path / "killed"))
    sweep = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    for _ in range(3):
        assert sweep.stdout.readline() == b"done\n"
    sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    sweep.stdout.close()
    cells = cells_of(DOCUMENT, Path(), {"cluster.replicas": list(range(1, 13))})
    _, there = carry_out(cells, tmp_path / "killed", ThisProcess())
    assert 3 <= there < 12
    carry_out(cells, tmp_path / "whole", ThisProcess())
    assert (tmp_path / "killed" / TABLE).read_bytes() == (tmp_path / "whole" / TABLE).read_bytes()


def test_the_knee_is_the_largest_rate_that_holds():
    rows = perform(CellTask({**DOCUMENT, "workload": DOCUMENT["workload"] | {"requests": 400}}, True))
    rates = [row["rate"] for row in rows]
    assert rates == sorted(rates)
    knee = next(row for row in rows if row["knee"])
    assert knee["holds"]
    above = [row for row in rows if row["rate"] > knee["rate"]]
    assert above
    assert not above[0]["holds"]
    assert above[0]["rate"] <= 1.021 * knee["rate"]


def test_a_cell_that_cannot_run_says_why_and_the_others_run(tmp_path):
    rows, _ = carry_out(cells_of(DOCUMENT, Path(), {"model": ["llama-3.1-70b", "qwen3-4b"]}), tmp_path, ThisProcess())
    assert "does not fit" in rows[0]["error"]
    assert rows[1]["counts.finished"] == 40
    with pytest.raises(ServetwinError, match="No cell of the sweep could be run"):
        carry_out(cells_of(DOCUMENT, Path(), {"model": ["llama-3.1-70b"]}), tmp_path, ThisProcess())


def test_two_sweeps_do_not_share_a_folder_at_once(tmp_path):
    from experiments.sweep import journal

    with journal.opened(tmp_path / CELLS), pytest.raises(FileError, match="another sweep"):  # noqa: SIM117
        with journal.opened(tmp_path / CELLS):
            pass


def test_only_a_workload_with_a_rate_can_be_raised():
    assert rate_of(DOCUMENT) == 10
    closed = {**DOCUMENT, "workload": {"requests": 3, "arrivals": {"name": "closed-loop", "concurrency": 3}}}
    with pytest.raises(InputError, match="without a rate"):
        rate_of(closed)
