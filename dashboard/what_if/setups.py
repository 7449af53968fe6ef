"""The two setups that the dashboard compares, and what they have in common."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from simcore.scenario import override

Document = dict[str, Any]
SHARED = ("workload", "slo", "seed", "measurement")
"""Sections that both setups have alike, so that they serve the same requests and are held to the same limits."""
SIDES = ("A", "B")


@dataclass(frozen=True, slots=True)
class Pair:
    """The sections of setup A, those of setup B, and those that they share; together each is a scenario."""

    shared: Document
    a: Document
    b: Document

    def own(self, side: str) -> Document:
        """The sections of one setup alone."""
        return self.a if side == "A" else self.b

    def document(self, side: str) -> Document:
        """The scenario of one setup."""
        return {**self.own(side), **self.shared}

    def with_own(self, side: str, own: Document) -> "Pair":
        """The pair with other sections for one setup."""
        return replace(self, a=own) if side == "A" else replace(self, b=own)

    def with_scenario(self, side: str, document: Mapping[str, Any]) -> "Pair":
        """The pair with a whole scenario for one setup; what it has of the shared sections is then shared."""
        own = {key: value for key, value in document.items() if key not in SHARED}
        shared = {key: value for key, value in document.items() if key in SHARED}
        return replace(self.with_own(side, own), shared=self.shared | shared)


def default_pair() -> Pair:
    """What the dashboard opens with: the same model in 16 and in 8 bits on one GPU, at a rate that the first feels."""
    shared = {
        "workload": {
            "requests": 1000,
            "arrivals": {"name": "poisson", "rate_per_s": 10.0},
            "prompt_tokens": {"name": "lognormal", "median": 800, "sigma": 0.8, "max": 8000},
            "output_tokens": {"name": "lognormal", "median": 150, "sigma": 0.6, "max": 1000},
        },
        "slo": {"ttft_s": {"p99": 0.5}, "tpot_s": {"p99": 0.05}},
        "seed": 0,
    }
    cluster = {"accelerator": "h100-sxm", "tensor_parallel": 1, "replicas": 1}
    first = {"model": "llama-3.1-8b", "engine": "vllm-v1", "cluster": cluster}
    return Pair(shared, first, first | {"precision": {"weights": "fp8", "kv_cache": "fp8"}})


def value_at(document: Mapping[str, Any], path: str) -> Any:
    """What stands at a dotted path; None where nothing does."""
    value: Any = document
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def with_value(document: Mapping[str, Any], path: str, value: Any) -> Document:
    """The document with a value at a dotted path, None for none.

    The name of a policy replaces the policy whole, as the parameters of one mean nothing to another.
    """
    if value is None:
        return _without(document, path.split("."))
    if path.endswith(".name"):
        path, value = path.removesuffix(".name"), {"name": value}
    return override(document, [f"{path}={json.dumps(value)}"])


def _without(document: Mapping[str, Any], path: list[str]) -> Document:
    first, *rest = path
    inner = document.get(first)
    if not rest:
        return {key: value for key, value in document.items() if key != first}
    return {**document, first: _without(inner, rest)} if isinstance(inner, Mapping) else dict(document)
