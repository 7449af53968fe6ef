"""What a report says of faults, and of what was done about them."""

from dashboard.resilience_section import resilience_section
from tests.e2e.scenarios import run
from tests.e2e.test_crashes import crash
from tests.e2e.test_pool_groups import CANARY, ROLLING


def test_a_run_without_any_has_no_section():
    assert resilience_section({"counts": {}}) == ""


def test_each_part_of_a_run_has_a_panel(tmp_path):
    gateway = {
        "hedging": {"name": "fixed-delay", "after_s": 0.01},
        "output_limit": {"name": "by-queue", "waiting_requests": 1, "tokens": 5},
    }
    scenario = CANARY | {"faults": [crash(1, 0.3, 0.2)], "updates": [ROLLING], "gateway": gateway}
    summary = run(scenario, tmp_path).summary
    told = resilience_section(summary)
    for title in ("Faults", "Gateway", "Groups of users", "Updates"):
        assert f"<h3>{title}</h3>" in told
    assert "<td>crash</td><td>1</td><td>300 ms</td><td>500 ms</td>" in told
    assert f"<td>{summary['groups']['new']['verdict']}</td>" in told
    assert "<td>3 of 3</td>" in told
    assert f'<th scope="row">Copies sent</th><td>{summary["gateway"]["hedges"]["sent"]}</td>' in told


def test_many_faults_are_told_up_to_a_number(tmp_path):
    event = {"name": "crash", "replica": 0, "at_s": 0.0, "until_s": None}
    counts = {"interrupted_requests": 0, "given_up_requests": 0, "void": True}
    told = resilience_section({"faults": {"events": [event | counts] * 60}})
    assert told.count("<td>crash</td>") == 50
    assert "10 more are in summary.json" in told
