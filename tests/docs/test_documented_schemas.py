"""The documents name every field, column and key that there is, with its default, and no other."""

import re
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import yaml
from pydantic import BaseModel

import servetwin
from simcore.metrics.registry import figures, latencies
from simcore.output.run_folder import RUN_FILES
from simcore.scenario import parse_scenario
from simcore.scenario.sections import Scenario
from simcore.workload.config.section import Section
from tools import scenario_page

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ROOT / "docs" / "reference"
FIXED = {"name": "fixed", "tokens": 5}
DOCUMENT = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "rtx-pro-6000-blackwell"},  # one whose profile has fallbacks for some kernels
    "max_context_tokens": 100,
    "workload": {
        "requests": 30,
        "arrivals": {"name": "constant", "rate_per_s": 5},
        "prompt_tokens": {"name": "uniform", "low": 5, "high": 150},
        "output_tokens": FIXED,
        "tenants": [{"name": "one", "share": 0.5}, {"name": "other", "share": 0.5}],
    },
    "slo": {"ttft_s": {"p99": 1}},
    "memory": {"tiers": [{"name": "cpu", "capacity_gb": 1}]},
}
NAMED_BY_OTHERS = (
    "throughput.ci",
    "throughput.band",
    "counts.rejected_by_reason",
    "metrics",
    "slo",
    "fairness.tenants",
)
NAMED_BY_OTHERS += ("kv.tiers", "links", "pricing.fallback_profiles", "pricing.shares", "run.versions")


def tables(document):
    """First and second cells of every row, code marks taken off, by the heading above; the first of two tables."""
    found: dict[str, dict[str, str]] = {}
    heading = ""
    for line in (DOCUMENTS / document).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif row := re.match(r"\| `([^`]+)` \| ([^|]*) \|", line):
            rows = found.setdefault(heading, {})
            assert row[1] not in rows, f"{row[1]} stands twice under {heading}"
            rows[row[1]] = row[2].strip("`")
    return found


def default(value):
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return "see below"
    return value["name"] if isinstance(value, dict) and "name" in value else value


def test_defaults_are_what_a_scenario_has():
    documented = tables("scenario.md")
    scenario = parse_scenario(DOCUMENT | {"slo": {}, "max_context_tokens": None, "memory": {}})
    known = {name: getattr(scenario, name) for name in Scenario.model_fields}
    known = {name: section for name, section in known.items() if isinstance(section, BaseModel)}
    known |= {f"scheduler.{name}": getattr(scenario.scheduler, name) for name in ("preemption",)}
    known |= {f"memory.{name}": getattr(scenario.memory, name) for name in ("prefix_cache", "retention", "host_link")}
    del known["workload"]
    for heading, section in known.items():
        assert list(documented[heading]) == list(type(section).model_fields), heading
        for name, shown in documented[heading].items():
            value = "required" if type(section).model_fields[name].is_required() else default(getattr(section, name))
            assert yaml.safe_load(shown) == value, f"{heading}: {name}"


def test_the_page_of_the_scenario_has_every_section_and_field(monkeypatch, tmp_path):
    known = scenario_page.sections()
    for section in known.values():
        assert scenario_page.meanings(section).keys() >= scenario_page.fields(section).keys()
    without = tmp_path / "page.md"
    without.write_text(scenario_page.TEMPLATE.read_text(encoding="utf-8").replace("\n{ChatSession}\n", "\n"), "utf-8")
    monkeypatch.setattr(scenario_page, "TEMPLATE", without)
    with pytest.raises(ValueError, match=r"page\.md leaves out ChatSession"):
        scenario_page.page()


def test_a_field_without_a_meaning_is_refused(monkeypatch):
    class Silent(Section):
        """A section that says nothing of its field."""

        tokens: int

    monkeypatch.setattr(scenario_page, "Scenario", Silent)
    with pytest.raises(ValueError, match=r"no meaning of Silent\.tokens"):
        scenario_page.sections()


def test_the_examples_are_scenarios():
    text = (DOCUMENTS / "scenario.md").read_text(encoding="utf-8")
    whole, chat, streams = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    for scenario, requests in ((whole, 2000), (whole | chat, 3000), (whole | streams, 2000)):
        assert servetwin.simulate(scenario).summary["counts"]["finished"] == requests
    bundled = yaml.safe_load((ROOT / "scenarios" / "multi-turn-chat.yaml").read_text(encoding="utf-8"))
    assert bundled["workload"] == chat["workload"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    result = servetwin.simulate(DOCUMENT, bands=9)
    assert result.summary["counts"]["rejected"] > 0
    return result, servetwin.save(result, tmp_path_factory.mktemp("runs") / "run")


def keys(summary, path=""):
    """The dotted paths of all values, ``*`` for names that are not the schema's own."""
    for name, value in summary.items():
        below = f"{path}.{'*' if path in NAMED_BY_OTHERS else name}".lstrip(".")
        if isinstance(value, dict):
            yield from keys(value, below)
        else:
            yield below


def test_every_key_of_the_summary(run):
    result, _ = run
    documented = tables("outputs.md")["summary.json"]
    metrics = list(tables("outputs.md")["Metrics"])
    assert metrics == [metric.place for metric in (*latencies(), *figures())]
    known = list(dict.fromkeys(keys(result.summary)))
    assert list(documented) == [key for key in known if key not in metrics]
    assert {key for key in metrics if not key.startswith("metrics.")} <= set(known)


@pytest.mark.parametrize("file", ["requests.parquet", "steps.parquet"])
def test_every_column(run, file):
    _, folder = run
    schema = parquet.read_schema(folder / file)
    types = {field.name: "text" if str(field.type).startswith("dictionary") else str(field.type) for field in schema}
    assert tables("outputs.md")[file] == types
    assert list(tables("outputs.md")[file]) == list(types)


def test_every_file(run):
    _, folder = run
    assert set(tables("outputs.md")["What a run leaves"]) == {path.name for path in folder.iterdir()} == set(RUN_FILES)
