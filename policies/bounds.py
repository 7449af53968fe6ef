"""The ranges of a policy's parameters, checked when it is made.

They are wide: what lies outside is a slip, or cannot be counted with. Times end far below the 292 years that the
simulator's clock holds, and begin with its nanosecond.
"""

from collections.abc import Iterable, Mapping

MOST = 2**31 - 1
"""Of requests, tokens, steps or levels."""
MOST_SEED = 2**64 - 1
SHORTEST_S, LONGEST_S = 1e-9, 1e9
LEAST_AMOUNT, MOST_AMOUNT = 1e-9, 1e15
"""Of tokens or requests, in all or per second, as limits have them."""
MOST_WEIGHT = 1e6
_MOST_SHOWN = 10**80


def check_range(policy: object, least: float, most: float, *names: str) -> None:
    """Raise ``ValueError`` unless these parameters are None or lie within the range, its ends included.

    Of one that is by tenant every value does.
    """
    for name in names:
        value = getattr(policy, name)
        for key, single in value.items() if isinstance(value, Mapping) else ():
            check_value(f"{name}.{key}", single, least, most)
        if not isinstance(value, Mapping):
            check_value(name, value, least, most)


def check_counts(policy: object, *names: str, least: int = 1) -> None:
    """The same for numbers of requests, tokens or steps."""
    check_range(policy, least, MOST, *names)


def check_amounts(policy: object, *names: str) -> None:
    """The same for amounts, in all or per second."""
    check_range(policy, LEAST_AMOUNT, MOST_AMOUNT, *names)


def check_seconds(policy: object, *names: str) -> None:
    """The same for times."""
    check_range(policy, SHORTEST_S, LONGEST_S, *names)


def check_levels(name: str, by_level: Mapping[int, float] | Iterable[int]) -> None:
    """Raise ``ValueError`` unless these are levels of priority."""
    for level in by_level:
        if not 0 <= level <= MOST:
            raise ValueError(f"{name} names the level {_value(level)}, expected levels from 0 to {MOST}")


def check_value(name: str, value: float | None, least: float, most: float) -> None:
    """Raise ``ValueError``, naming the parameter, unless a value is None or lies within the range."""
    if value is not None and not least <= value <= most:
        kind = "a whole number" if isinstance(least, int) and isinstance(most, int) else "a number"
        raise ValueError(f"{name} is {_value(value)}, expected {kind} from {_bound(least)} to {_bound(most)}")


def _value(value: float) -> str:
    return "a number beyond all bounds" if isinstance(value, int) and abs(value) > _MOST_SHOWN else str(value)


def _bound(bound: float) -> str:
    return f"{bound:g}" if isinstance(bound, float) else str(bound)
