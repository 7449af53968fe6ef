"""How concurrent transfers share the links on their way."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

LinkName = TypeVar("LinkName", bound=Hashable)


def max_min_rates(routes: Sequence[Sequence[LinkName]], bytes_per_s: Mapping[LinkName, float]) -> list[float]:
    """The max-min fair rate of each route: none can have more without one that has no more than it having less.

    By progressive filling (Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2): all rates rise together
    until a link is full; the rates over it are then final, and the others go on. A route passes a link at most once.
    A route over no link is unlimited.
    """
    rates = [float("inf")] * len(routes)
    users: dict[LinkName, list[int]] = {}
    for number, route in enumerate(routes):
        for link in route:
            users.setdefault(link, []).append(number)
    left = {link: bytes_per_s[link] for link in users}
    rising = {link: len(numbers) for link, numbers in users.items()}
    while rising:
        full = min(rising, key=lambda link: left[link] / rising[link])
        rate = left[full] / rising[full]
        for number in users[full]:
            if rates[number] == float("inf"):
                rates[number] = rate
                for link in routes[number]:
                    left[link] = max(left[link] - rate, 0.0)
                    rising[link] -= 1
        rising = {link: count for link, count in rising.items() if count}
    return rates
