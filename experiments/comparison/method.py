"""The statistics of a comparison in words, for whoever reads its table."""

from experiments.comparison.resampling import BLOCKS, DRAWS
from experiments.comparison.significance import MOST_FLIPS, least_p_value
from simcore.metrics.confidence import LEVEL


def describe_method(seeds: int, compared: int) -> str:
    """How differences, intervals and p-values were found, with ``seeds`` runs of each of ``compared`` + 1 variants."""
    decides = "The interval decides: a variant is called better or worse if its interval leaves out 0. "
    if compared > 1:
        decides += (
            f"Intervals are widened for {compared} comparisons with the baseline (Bonferroni), so all of a metric hold "
            f"together with {LEVEL:.0%}; each metric stands for itself. p_holm, Holm's adjustment of p_value, is for "
            "information."
        )
    else:
        decides += "Each metric stands for itself. p_value is for information; with one comparison p_holm equals it."
    if seeds == 1:
        return (
            "One run of each variant, all with the same seed, so on the same requests. Differences are of those two "
            f"runs; their {LEVEL:.0%} intervals and two-sided p-values come from a paired bootstrap over requests "
            f"({DRAWS} draws of {BLOCKS} blocks of consecutive requests, the same ones in both runs; Student's t with "
            f"{BLOCKS - 1} degrees of freedom). Rates have none, as a draw of requests has no duration. {decides}"
        )
    flips = "all ways" if 2**seeds <= MOST_FLIPS else f"{MOST_FLIPS} drawn ways"
    return (
        f"Every variant ran with the same {seeds} seeds, fixed beforehand, so on the same requests (common random "
        f"numbers). Differences are taken seed by seed; their mean has a {LEVEL:.0%} interval by Student's t with "
        f"{seeds - 1} degrees of freedom, which takes it to be about normal. {decides} p_value is two-sided, from a "
        f"paired permutation test ({flips} to flip the signs), which assumes no distribution and with {seeds} seeds "
        f"cannot fall below {least_p_value(seeds):.2g}."
    )
