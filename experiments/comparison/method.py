"""The statistics of a comparison in words, for whoever reads its table."""

from experiments.comparison.resampling import BLOCKS, DRAWS
from experiments.comparison.significance import DRAWS_OF_PAIRS, MOST_FLIPS, least_p_value
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
    flips = "all ways" if 2**seeds <= MOST_FLIPS else f"{MOST_FLIPS} drawn ways"
    return (
        f"Every variant ran with the same {seeds} seeds, fixed beforehand, so on the same requests (common random "
        "numbers). Differences are taken seed by seed; their mean has a "
        f"{LEVEL:.0%} interval from a paired bootstrap ({DRAWS_OF_PAIRS} draws; widened for few seeds, within the "
        f"range of the differences) and a two-sided p-value from a paired permutation test ({flips} to flip their "
        f"signs), which with {seeds} seeds cannot fall below {least_p_value(seeds):.2g}. Neither assumes a "
        f"distribution. {adjusted}"
    )
