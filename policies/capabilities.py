"""Hooks that are called only where a policy says that it has them.

Most policies need few of the calls that a scheduler could make, and some of these cost time or narrow what may be
planned ahead. So a hook is paired with a class attribute that announces it: ``paired_hooks`` of a kind's base class
maps hooks to these. A class that has one of the two must have the other.
"""

from collections.abc import Mapping


class CapabilityError(TypeError):
    """A policy has a hook that it does not announce, or announces one that it does not have."""


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
