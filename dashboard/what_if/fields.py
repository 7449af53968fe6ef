"""The settings that the dashboard offers as fields; all others can be given as KEY=VALUE."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from dashboard.what_if.setups import value_at
from policies.registry import policy_names
from simcore.hardware import accelerator_names
from simcore.models import preset_names
from simcore.scenario import engine_names
from simcore.scenario.sections import Precision

Kind = Literal["choice", "whole", "number", "switch"]
_WORDS_OF_LENGTHS: tuple[tuple[str, str, Kind, str], ...] = (
    ("tokens", "length (tokens)", "whole", "Length of every request."),
    ("median", "median (tokens)", "number", "Half of all requests are shorter."),
    ("sigma", "sigma of log length", "number", "Standard deviation of the logarithm; 0.8 is a wide spread."),
    ("low", "shortest (tokens)", "whole", "Least of the even spread."),
    ("high", "longest (tokens)", "whole", "Greatest of the even spread."),
    ("max", "at most (tokens)", "whole", "No request is longer."),
)


@dataclass(frozen=True, slots=True)
class Field:
    """One setting: where it stands in a scenario, what it is called, and how it is entered.

    A ``choice`` is among ``choices``; numbers are not bounded here, so that a wrong one is answered as anywhere else.
    An ``optional`` field may be empty.
    """

    path: str
    label: str
    kind: Kind
    help: str
    choices: Callable[[], Sequence[str]] = tuple
    optional: bool = False


def _policies(kind: str) -> Callable[[], Sequence[str]]:
    return lambda: policy_names(kind)


def _literals(name: str) -> Callable[[], Sequence[str]]:
    def choices() -> Sequence[str]:
        found: list[str] = []
        for part in get_args(Precision.model_fields[name].annotation):
            found += get_args(part) or [part]
        return [str(part) for part in found]

    return choices


SETUP_FIELDS = (
    Field("model", "Model", "choice", "By name, as servetwin models lists them.", preset_names),
    Field("cluster.accelerator", "GPU", "choice", "By name, as servetwin hardware lists them.", accelerator_names),
    Field("cluster.tensor_parallel", "Tensor parallel (GPUs)", "whole", "GPUs that share every layer of a replica."),
    Field("cluster.replicas", "Replicas", "whole", "Copies of the model, each on GPUs of its own."),
    Field("precision.weights", "Weights", "choice", "Number format of the weights.", _literals("weights")),
    Field("precision.kv_cache", "KV cache", "choice", "Number format of keys and values.", _literals("kv_cache")),
    Field("engine", "Engine", "choice", "The preset that all other settings start from.", engine_names),
    Field("scheduler.ordering.name", "Ordering", "choice", "Who is served first.", _policies("ordering")),
    Field("scheduler.batching.name", "Batching", "choice", "What a step is filled with.", _policies("batching")),
    Field(
        "scheduler.batching.max_batched_tokens",
        "Token budget of a step (tokens)",
        "whole",
        "Longest chunk of a prompt, and decodes beside it.",
    ),
    Field("scheduler.batching.max_running_requests", "Slots (requests)", "whole", "Most requests that run at once."),
    Field("cluster.routing.name", "Routing", "choice", "Which replica a request goes to.", _policies("routing")),
    Field("memory.prefix_caching", "Prefix cache", "switch", "Keep the KV cache of prompts that begin alike."),
)
_LENGTHS = tuple(
    Field(f"workload.{key}.{name}", f"{title}, {words}", kind, meaning)
    for key, title in (("prompt_tokens", "Prompt"), ("output_tokens", "Output"))
    for name, words, kind, meaning in _WORDS_OF_LENGTHS
)
SHARED_FIELDS = (
    Field("workload.requests", "Requests", "whole", "How many arrive."),
    Field("workload.arrivals.rate_per_s", "Rate (requests/s)", "number", "Mean rate of arrivals."),
    Field("workload.arrivals.concurrency", "Clients", "whole", "Each waits for its answer before it sends again."),
    Field("workload.rate_scale", "Times as fast", "number", "2 sends the trace's requests twice as fast."),
    *_LENGTHS,
    Field("slo.ttft_s.p99", "Limit of P99 TTFT (s)", "number", "Time to first token; may be empty.", optional=True),
    Field("slo.tpot_s.p99", "Limit of P99 TPOT (s)", "number", "Time per output token; may be empty.", optional=True),
    Field("seed", "Seed", "whole", "Another seed draws other requests."),
)


def shown_fields(fields: Sequence[Field], complete: Mapping[str, Any]) -> list[Field]:
    """Those fields that a scenario has, given in full; the optional ones always."""
    return [field for field in fields if field.optional or value_at(complete, field.path) is not None]


def field_of_error(name: str, fields: Sequence[Field]) -> Field | None:
    """The field beside which an error about ``name`` is shown; None where no field is about it."""
    for field in fields:
        stem = field.path.removesuffix(".name")
        if name in (field.path, stem) or name.startswith(f"{stem}."):
            return field
    inside = [field for field in fields if field.path.startswith(f"{name}.")]
    return inside[0] if inside else None
