"""The documents name every field, column and key that there is, with its default, and no other."""

import re
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import servetwin
from simcore.output.run_folder import RUN_FILES
from simcore.scenario import parse_scenario, tier_sections
from simcore.scenario.policy_choice import complete_policy
from simcore.scenario.sections import Cluster, Scenario
from simcore.workload import StreamsWorkload, SyntheticWorkload, TraceWorkload
from simcore.workload import config as workload

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ROOT / "docs" / "reference"
FIXED = {"name": "fixed", "tokens": 5}
DOCUMENT = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "rtx-pro-6000-blackwell"},  # one whose profile is lent some kernels
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
NAMED_BY_OTHERS = ("counts.rejected_by_reason", "metrics", "slo", "fairness.tenants")
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
    if value is PydanticUndefined:
        return "required"
    if value is None:
        return "none"
    if isinstance(value, BaseModel):
        return value.model_dump() if "name" in type(value).model_fields else "see below"
    if value == "":
        return '""'
    return value["name"] if isinstance(value, dict) and "name" in value else value


def fields(model, defaults=None):
    """Names and defaults of a section's fields, but for the name of what it is."""
    stated = {
        name: field.get_default(call_default_factory=True)
        if defaults is None or field.is_required()
        else getattr(defaults, name)
        for name, field in model.model_fields.items()
        if name != "name"
    }
    return {name: default(value) for name, value in stated.items()}


def without_senders(model):
    return {name: value for name, value in fields(model).items() if name not in workload.SenderSection.model_fields}


def alternatives(kind, *models):
    return {f"{kind}: {model.model_fields['name'].annotation.__args__[0]}": fields(model) for model in models}


def sections():
    """What the program knows, by the headings of the document; with the default engine's settings."""
    scenario = parse_scenario(DOCUMENT | {"slo": {}, "max_context_tokens": None, "memory": {}})
    inner = {
        name: fields(type(section), section)
        for name in Scenario.model_fields
        if isinstance(section := getattr(scenario, name), BaseModel) and name not in ("workload", "cluster")
    }
    preemption = scenario.scheduler.preemption
    batching = complete_policy("batching", {"name": "chunked-prefill"}, "scheduler.batching")
    return {
        "The document": fields(Scenario, scenario),
        "cluster": fields(Cluster),
        **inner,
        "memory.prefix_cache": fields(type(scenario.memory.prefix_cache), scenario.memory.prefix_cache),
        "memory.retention": fields(type(scenario.memory.retention), scenario.memory.retention),
        "memory.tiers: cpu": fields(tier_sections.CpuTier),
        "memory.tiers: ssd, remote": fields(tier_sections.StorageTier),
        "memory.host_link": fields(tier_sections.HostLink),
        "scheduler.preemption": fields(type(preemption), preemption),
        "batching: chunked-prefill": {name: default(value) for name, value in batching.items() if name != "name"},
        "workload": fields(workload.SenderSection),
        "tenants": {"name": "required", **fields(workload.TenantShare)},
        "workload: random requests": without_senders(SyntheticWorkload),
        "workload: a trace": without_senders(TraceWorkload),
        "workload: streams": fields(StreamsWorkload),
        "columns": fields(workload.TraceColumns),
        **alternatives(
            "arrivals",
            workload.PoissonArrivals,
            workload.GammaArrivals,
            workload.ConstantArrivals,
            workload.OnOffArrivals,
            workload.PiecewiseArrivals,
            workload.DailyArrivals,
            workload.ClosedLoopArrivals,
        ),
        **alternatives(
            "tokens", workload.FixedLength, workload.UniformLength, workload.LognormalLength, workload.QuantilesLength
        ),
        **alternatives("lengths", workload.EmpiricalLengths, workload.ListedLengths, workload.CorrelatedLengths),
        **alternatives("prefix", workload.SharedTextPart, workload.ExamplesPart, workload.UniqueTextPart),
        **alternatives("session", workload.ChatSession, workload.AgentsSession),
        **alternatives(
            "time", workload.FixedTime, workload.UniformTime, workload.ExponentialTime, workload.LognormalTime
        ),
    }


def test_every_field_of_a_scenario_stands_in_the_document_with_its_default():
    documented = tables("scenario.md")
    known = sections()
    assert documented.keys() == known.keys()
    for heading, expected in known.items():
        assert list(documented[heading]) == list(expected), heading
        for name, value in expected.items():
            shown = documented[heading][name]
            meant = value if isinstance(value, str) else yaml.safe_load(yaml.safe_dump(value))
            assert (shown if isinstance(value, str) else yaml.safe_load(shown)) == meant, f"{heading}: {name}"


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
    names = {name for name in documented if name in result.summary["metrics"]}
    assert names == set(result.summary["metrics"])
    assert [name for name in documented if name not in names] == list(dict.fromkeys(keys(result.summary)))


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
