"""What a reader of a comparison must know beside its figures."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from experiments.comparison.evidence import Evidence
from experiments.comparison.pairing import Pairing
from experiments.comparison.plan import Plan
from experiments.comparison.significance import fewest_pairs, least_p_value

_MOST_LISTED = 8
_FIGURE = re.compile(r"\d[\d,.]*")

Sentences = tuple[str, ...]


def foreseen(plan: Plan) -> Sentences:
    """Warnings that the number of seeds gives rise to, known before anything runs."""
    seeds, comparisons = len(plan.seeds), len(plan.variants) - 1
    if seeds == 1:
        return (
            "One seed: how differences vary from one stream of requests to another is unknown. Intervals and p-values "
            "are of this one stream alone; near saturation, where queues remember for long, they are far too sure.",
        )
    needed = fewest_pairs(comparisons)
    if seeds >= needed:
        return ()
    times = f", before it is adjusted for {comparisons} comparisons" if comparisons > 1 else ""
    return (
        f"Few seeds: with {seeds} no p-value can fall below {least_p_value(seeds):.2g}{times}; to be below 0.05 takes "
        f"at least {needed} seeds. Verdicts go by the intervals, which with so few seeds are wide and lean on "
        "differences being about normal.",
    )


def remarks_on(
    plan: Plan, evidence: Mapping[str, Evidence], missing: Sequence[tuple[str, int]], looks: Sequence[int]
) -> tuple[Sentences, Sentences]:
    """Warnings, which bear on what the figures mean, and notices."""
    warnings, notices = [], list(plan.notices)
    if missing:
        listed = [f"{variant} seed {seed}" for variant, seed in missing]
        warnings.append(
            f"Interrupted: {len(missing)} of {len(plan.runs)} runs are missing ({_list(listed)}). No verdict is "
            "stated before all are there, since the number of seeds was fixed beforehand."
        )
    warnings += foreseen(plan)
    seeds = len(plan.seeds)
    earlier = [str(look) for look in looks if look < seeds]
    if earlier:
        warnings.append(
            f"Results with {_list(earlier)} seeds were seen here before more were added. If it was for what they "
            "showed, intervals are too narrow; fix the number of seeds beforehand, in a folder of its own."
        )
    others = {variant: found for variant, found in evidence.items() if variant != plan.baseline}

    def where(condition: Callable[[Pairing], bool]) -> list[str]:
        return [variant for variant, found in others.items() if any(map(condition, found.pairings.values()))]

    if different := where(lambda pair: not pair.same_requests):
        warnings.append(
            f"Not the same requests as {plan.baseline}: {_list(different)}. Pairs share little but their seed, and "
            "differences hold for service and requests together."
        )
    if later := where(lambda pair: pair.same_requests and not pair.same_arrivals):
        notices.append(
            f"The requests of {plan.baseline}, but at other times, as the workload or the clients of a closed loop "
            f"set them: {_list(later)}."
        )
    for variant, found in others.items():
        unmatched = sum(pair.finished_in_one for pair in found.pairings.values())
        if unmatched:
            warnings.append(
                f"{unmatched:,} requests were finished by only one of {variant} and {plan.baseline}; latencies are of "
                "finished requests, so they compare different ones."
            )
    remarks = dict.fromkeys(remark for found in evidence.values() for remark in found.remarks)
    return tuple(warnings), (*notices, *_each_kind_once(remarks))


def _each_kind_once(remarks: Iterable[str]) -> Iterator[str]:
    """The first of those that differ in figures alone."""
    kinds: dict[str, list[str]] = {}
    for remark in remarks:
        kinds.setdefault(_FIGURE.sub("#", remark), []).append(remark)
    for first, *others in kinds.values():
        yield f"{first} Other runs say the same with other figures." if others else first


def _list(words: Sequence[str]) -> str:
    shown = ", ".join(words[:_MOST_LISTED])
    return shown if len(words) <= _MOST_LISTED else f"{shown} and {len(words) - _MOST_LISTED} more"
