"""The statistics of a comparison in words, for whoever reads its table."""

from simcore.comparison.resampling import BLOCKS, DRAWS
from simcore.comparison.significance import MOST_FLIPPED_PAIRS
from simcore.metrics.confidence import LEVEL


def describe_method(seeds: int, compared: int) -> str:
    """How differences, intervals and p-values were found, with ``seeds`` runs of each of ``compared`` + 1 variants."""
    adjusted = (
        "The intervals and p_value stand for themselves; p_holm, which decides what is called better or worse "
        f"(below 5 %), is Holm's adjustment for {compared} comparisons with the baseline, for each metric by itself."
        if compared > 1
        else "With one comparison nothing is adjusted for, so p_holm, which decides what is called better or worse "
        "(below 5 %), is p_value; each metric stands for itself."
    )
    if seeds == 1:
        return (
            "One run of each variant, all with the same seed, so on the same requests. Differences are of those two "
            f"runs; their {LEVEL:.0%} intervals and two-sided p-values come from a paired bootstrap over requests "
            f"({DRAWS} draws of {BLOCKS} blocks of consecutive requests, the same ones in both runs; Student's t with "
            f"{BLOCKS - 1} degrees of freedom). Rates have none, as a draw of requests has no duration. {adjusted}"
        )
    flips = (
        f"p_sign_flip is the exact sign-flip test, which assumes no distribution; with {seeds} seeds it cannot fall "
        f"below {2 / 2**seeds:.2g}."
        if seeds <= MOST_FLIPPED_PAIRS
        else f"p_sign_flip is left out above {MOST_FLIPPED_PAIRS} seeds."
    )
    return (
        f"Every variant ran with the same {seeds} seeds, fixed beforehand, so on the same requests (common random "
        "numbers). Differences are taken seed by seed; their mean has a "
        f"{LEVEL:.0%} Student's t interval and a two-sided paired t-test, both with {seeds - 1} "
        f"degree{'s' if seeds > 2 else ''} of freedom. {flips} {adjusted}"
    )
