"""Folders of a benchmark result that somebody posted: ``scenario.yaml`` and ``measured.json``.

The scenario states the set-up as far as the post tells it. The other file has what was measured, latencies in
milliseconds, and what is doubtful about the post. It may be missing where the scenario's trace is a result file of a
load generator with latencies, which are then what was measured. A folder of such folders is read as all of them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fidelity.bench_latencies import measured_latencies
from fidelity.case import Case, Refusal
from fidelity.known_names import known_names
from fidelity.run_names import is_moe
from simcore.core.bounds import MOST_COUNT, Figure
from simcore.core.errors import FileError, InputError, ServetwinError
from simcore.core.files import read_json
from simcore.core.validation import explain
from simcore.engines import DEFAULT_ENGINE
from simcore.scenario.reading import read_scenario

SCENARIO, MEASURED = "scenario.yaml", "measured.json"
_LATENCIES = {"ttft": "ttft_s", "tpot": "tpot_s", "e2e": "e2e_s"}
_RATES = {"rps": "requests_per_s", "out_tps": "output_tokens_per_s"}
_MS_PER_S = 1e3
_OTHER_REQUESTS = ("rate_scale", "window_s", "requests", "resample")
_NO_FIGURE = "no figure that is compared"
_OLDER_NAMES = {"prefill-first": "chunked-prefill-first"}
"""Batching policies that scenarios of posts call otherwise."""
_FILES = (("model",), ("workload", "trace"), ("workload", "lengths", "file"))


class _Post(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)

    gpu: str
    n: Annotated[int, Field(ge=1, le=MOST_COUNT)]
    model: str
    precision: str
    engine: str
    version: str
    load: str = ""
    doubts: str = ""
    measured: dict[str, Figure]


def read_posts(folder: Path) -> list[Case | Refusal]:
    """The posts of a folder, in order of name; raises ``FileError`` or ``InputError`` for what cannot be read."""
    if not folder.is_dir():
        raise FileError(folder, "no such folder")
    if (folder / MEASURED).exists():
        return [_case(folder)]
    if (folder / SCENARIO).exists():
        return [_own_run(folder)]
    found = sorted({path.parent for name in (MEASURED, SCENARIO) for path in folder.glob(f"*/{name}")})
    if not found:
        raise FileError(folder, f"holds no {MEASURED}, expected a benchmark result that was posted or folders of such")
    return [_case(one) if (one / MEASURED).exists() else _own_run(one) for one in found]


def _own_run(folder: Path) -> Case | Refusal:
    """A scenario whose trace is the result file of the run that it repeats."""
    document = read_scenario(folder / SCENARIO)
    workload = document.get("workload")
    trace = workload.get("trace") if isinstance(workload, Mapping) else None
    if not isinstance(workload, Mapping) or not isinstance(trace, str):
        expected = "or a trace in workload that is a result file with latencies"
        raise FileError(folder, f"holds no {MEASURED}, expected that, {expected}")
    for field in _OTHER_REQUESTS:
        if field in workload:
            expected = "nothing, since the latencies of its result file are of all requests as they were sent"
            raise InputError(f"{folder / SCENARIO}: workload.{field}", workload[field], expected)
    path = folder / trace
    measured = measured_latencies(path, str(workload.get("format", "auto")))
    document["workload"] = {**workload, "trace": str(path.resolve())}
    engine, _, version = str(document.get("engine", DEFAULT_ENGINE)).partition("@")
    cluster = document.get("cluster", {})
    post = _Post(
        gpu=str(cluster.get("accelerator")),
        n=1,
        model=str(document.get("model")),
        precision=str(document.get("precision", {}).get("weights", "auto")),
        engine=engine,
        version=version or "unstated",
        load=Path(trace).name,
        measured={},
    )
    labels = _labels(post, document)
    return Case(folder.name, labels, document, measured) if measured else Refusal(folder.name, labels, _NO_FIGURE)


def _case(folder: Path) -> Case | Refusal:
    try:
        post = _Post.model_validate(read_json(folder / MEASURED))
    except ValidationError as error:
        raise explain(error, _Post, f"{folder / MEASURED}: ") from error
    document = _document(read_scenario(folder / SCENARIO), folder, post)
    labels = _labels(post, document)
    measured = _figures(post.measured)
    if not measured:
        return Refusal(folder.name, labels, _NO_FIGURE)
    return Case(folder.name, labels, document, measured)


def _document(stated: dict[str, Any], folder: Path, post: _Post) -> dict[str, Any]:
    """The scenario by today's names, of the engine's own version, its files found wherever it is read from."""
    document = {name: dict(section) if isinstance(section, Mapping) else section for name, section in stated.items()}
    engine = known_names().engines.get(post.engine, document.get("engine"))
    version = post.version.split()[0].rstrip("+")
    document["engine"] = f"{engine}@{version}" if version[:1].isdigit() else engine
    host = document.pop("host", {})
    if host.get("overlapped") is False and "async" in post.version:
        document["host"] = {"async_scheduling": True}
    batching = document.get("scheduler", {}).get("batching")
    if batching:
        batching = {**batching, "name": _OLDER_NAMES.get(batching["name"], batching["name"])}
        document["scheduler"] = {**document["scheduler"], "batching": batching}
    for *sections, name in _FILES:
        place: Any = document
        for section in sections:
            place = place.get(section, {})
        if isinstance(place.get(name), str) and (folder / place[name]).exists():
            place[name] = str((folder / place[name]).resolve())
    return document


def _labels(post: _Post, document: Mapping[str, Any]) -> dict[str, str]:
    model = str(document.get("model"))
    try:
        kind = "MoE" if is_moe(model) else "dense"
    except ServetwinError:
        kind = "unknown"
    return {
        "engine": post.engine,
        "version": post.version,
        "accelerator": post.gpu,
        "model": model,
        "kind": kind,
        "precision": post.precision,
        "tensor_parallel": str(document.get("cluster", {}).get("tensor_parallel", 1)),
        "load": post.load or "unstated",
        "doubts": post.doubts or "none",
    }


def _figures(measured: Mapping[str, float]) -> dict[str, float]:
    found = {}
    for name, value in measured.items():
        metric, _, statistic = name.partition("_")
        if metric in _LATENCIES and value > 0:
            found[f"{_LATENCIES[metric]}.{statistic}"] = value / _MS_PER_S
        elif name in _RATES and value > 0:
            found[_RATES[name]] = value
    return found
