"""Hooks that are called only where a policy says that it has them.

Most policies need few of the calls that a scheduler could make, and some of these cost time or narrow what may be
planned ahead. So a hook is paired with a class attribute that announces it: ``paired_hooks`` of a kind's base class
maps hooks to these. A class that has one of the two must have the other.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

from policies.ordering import Ordering

_TIMES_S = (10.0, 1000.0)


@dataclass(frozen=True, slots=True)
class _PlainRequest:
    """Some request that has arrived at the start and waits."""

    number: int = 0
    arrival_s: float = 0.0
    prompt_tokens: int = 100
    max_output_tokens: int = 100
    tenant: str = ""
    priority: int = 0
    generated_tokens: int = 0
    tokens_in_memory: int = 0
    preemptions: int = 0


class CapabilityError(TypeError):
    """A policy has a hook that it does not announce, or announces one that it does not have."""


@cache
def check_capabilities(policy: type) -> None:
    """Raise ``CapabilityError`` unless hooks and announcements of a policy's class go together."""
    hooks: Mapping[str, str] = getattr(policy, "paired_hooks", {})
    for hook, announcement in hooks.items():
        base = next(kind for kind in reversed(policy.__mro__) if hook in vars(kind))
        has, says = getattr(policy, hook) is not getattr(base, hook), bool(getattr(policy, announcement))
        if has and not says:
            raise CapabilityError(f"{policy.__qualname__} defines {hook}, and so must state {announcement} = True")
        if says and not has:
            raise CapabilityError(f"{policy.__qualname__} states {announcement}, and so must define {hook}")


def check_time_dependence(ordering: Ordering) -> None:
    """Raise ``CapabilityError`` if the key of a plain request differs at two times and the ordering does not say so.

    The ordering itself is left as it is; one whose key cannot be taken of such a request is not judged.
    """
    if ordering.changes_with_time:
        return
    try:
        keys = [_key_at(deepcopy(ordering), now_s) for now_s in _TIMES_S]
    except Exception:  # whatever a policy of a third party makes of a request that never comes
        return
    if keys[0] != keys[1]:
        name = type(ordering).__qualname__
        raise CapabilityError(f"{name} has a key that changes with time, and so must state changes_with_time = True")


def _key_at(ordering: Ordering, now_s: float) -> tuple[float, ...]:
    request = _PlainRequest()
    for predictor in ordering.predictors:
        if predictor.sees_truth:
            predictor.reveal(request, request.max_output_tokens // 2)
    return ordering.key(request, now_s)
