"""Policies by kind and name. A file of ``policies/KIND/`` is a policy, and its name that of the file: ``max-tokens`` is
in ``max_tokens.py``. A third party adds one with an entry point of the group ``servetwin.policies``.

The entry point's name is ``KIND.NAME`` (for example ``ordering.my-order``), its value the class. Nothing is imported
before it is asked for.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import Any

import policies

ENTRY_POINT_GROUP = "servetwin.policies"

KINDS = tuple(sorted(module.name for module in iter_modules(policies.__path__) if module.ispkg))
"""What there are policies for: a folder each."""


class UnknownPolicyError(LookupError):
    """No policy of this kind has this name; ``known`` lists those that there are."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.kind = kind
        self.name = name
        self.known = known
        super().__init__(f"no {kind} policy is called {name!r}; known: {', '.join(known)}")


class BrokenPolicyError(LookupError):
    """A third party's policy is registered but cannot be imported."""


@cache
def _modules(kind: str) -> tuple[str, ...]:
    """The modules of a kind, by the names that policies in them have; some hold only what policies share."""
    return tuple(sorted(module.name.replace("_", "-") for module in iter_modules(_package(kind).__path__)))


def _package(kind: str) -> Any:
    return import_module(f"policies.{kind}")


@cache
def _built_in(kind: str, name: str) -> type[Any] | None:
    """The class of the module of this name that derives from a class of the kind; None if there is none."""
    if name not in _modules(kind):
        return None
    package = _package(kind)
    bases = tuple(value for value in vars(package).values() if _is_of(value, package.__name__))
    module = import_module(f"{package.__name__}.{name.replace('-', '_')}")
    found = [
        value
        for value in vars(module).values()
        if _is_of(value, module.__name__) and issubclass(value, bases) and not value.__name__.startswith("_")
    ]
    if len(found) > 1:
        raise TypeError(f"{module.__name__} holds {len(found)} policies ({found[0].__name__}, …); a file holds one")
    return found[0] if found else None


def _is_of(value: object, module: str) -> bool:
    return isinstance(value, type) and value.__module__ == module


@cache
def _third_party(kind: str) -> dict[str, str]:
    prefix = f"{kind}."
    return {
        point.name.removeprefix(prefix): point.value
        for point in entry_points(group=ENTRY_POINT_GROUP)
        if point.name.startswith(prefix)
    }


@cache
def built_in_names(kind: str) -> tuple[str, ...]:
    """The names of the policies of a kind that come with servetwin, sorted. Imports them all."""
    return tuple(name for name in _modules(kind) if _built_in(kind, name) is not None)


def policy_names(kind: str) -> tuple[str, ...]:
    """The names of all policies of a kind, sorted. Imports those that come with servetwin."""
    return tuple(sorted({*built_in_names(kind), *_third_party(kind)}))


def is_policy(kind: str, name: str) -> bool:
    """Whether there is such a policy. Imports no other."""
    return _built_in(kind, name) is not None or name in _third_party(kind)


def policy_class(kind: str, name: str) -> type[Any]:
    """The class registered under a kind and a name; a built-in wins over a third party's of the same name.

    Raises:
        UnknownPolicyError: no such policy.
        BrokenPolicyError: a third party's policy that cannot be imported.
    """
    built_in = _built_in(kind, name)
    if built_in is not None:
        return built_in
    target = _third_party(kind).get(name)
    if target is None:
        raise UnknownPolicyError(kind, name, policy_names(kind))
    module, _, attribute = target.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # whatever a third party's module raises
        raise BrokenPolicyError(f"{target} cannot be imported ({type(error).__name__}: {error})") from error
    if not isinstance(found, type):
        raise BrokenPolicyError(f"{target} is no class")
    return found


def third_party_module(kind: str, name: str) -> str | None:
    """The module of a third party's policy, which is not imported; None if there is no such policy."""
    target = _third_party(kind).get(name)
    return None if target is None else target.partition(":")[0]


def is_built_in(policy: type[Any]) -> bool:
    """Whether a class is one of ours."""
    return policy.__module__.partition(".")[0] == __name__.partition(".")[0]


def policy_name(kind: str, policy: type[Any]) -> str:
    """The name under which a class is registered; raises ``LookupError`` if it is not."""
    name = policy.__module__.rpartition(".")[2].replace("_", "-")
    if _built_in(kind, name) is policy:
        return name
    target = f"{policy.__module__}:{policy.__qualname__}"
    for name, registered in _third_party(kind).items():
        if registered == target:
            return name
    raise LookupError(f"{target} is not registered as a {kind} policy")
