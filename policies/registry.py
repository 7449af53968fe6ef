"""Policies by kind and name. A third party adds one with an entry point of the group ``servetwin.policies``.

The entry point's name is ``KIND.NAME`` (for example ``ordering.my-order``), its value the class.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

ENTRY_POINT_GROUP = "servetwin.policies"

BUILT_IN: dict[str, dict[str, str]] = {
    "ordering": {
        "fcfs": "policies.ordering.fcfs:FirstComeFirstServed",
    },
    "batching": {
        "chunked-prefill": "policies.batching.chunked_prefill:ChunkedPrefill",
    },
    "preemption": {
        "latest": "policies.preemption.latest:Latest",
    },
    "routing": {
        "round-robin": "policies.routing.round_robin:RoundRobin",
    },
}


class UnknownPolicyError(LookupError):
    """No policy of this kind has this name; ``known`` lists those that there are."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.kind = kind
        self.name = name
        self.known = known
        super().__init__(f"no {kind} policy is called {name!r}; known: {', '.join(known)}")


@cache
def _third_party(kind: str) -> dict[str, str]:
    prefix = f"{kind}."
    return {
        point.name.removeprefix(prefix): point.value
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.name.startswith(prefix)
    }


def policy_names(kind: str) -> tuple[str, ...]:
    """The names of all policies of a kind, sorted."""
    return tuple(sorted({*BUILT_IN[kind], *_third_party(kind)}))


def policy_class(kind: str, name: str) -> type[Any]:
    """The class registered under a kind and a name; a built-in wins over a third party's of the same name.

    Raises:
        UnknownPolicyError: no such policy.
    """
    target = BUILT_IN[kind].get(name) or _third_party(kind).get(name)
    if target is None:
        raise UnknownPolicyError(kind, name, policy_names(kind))
    module, _, attribute = target.partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found
