"""Make ``bundled-workload.csv``, the workload of ``make run``: about ten minutes of chat for one H100 and an 8B model.

It is drawn from the distributions stated below, whose parameters were read off the Azure LLM inference trace 2023,
conversation (github.com/Azure/AzurePublicDataset at commit b469a113, data/AzureLLMInferenceTrace_conv.csv, CC-BY-4.0;
Patel et al., "Splitwise", ISCA 2024). No request of that trace is copied. Matched are

* the quantiles of prompt and output length in PROMPT_TOKENS and OUTPUT_TOKENS, log-linear in between;
* Spearman's rank correlation between the two (5,000 requests leave it a standard error of 0.014);
* the coefficient of variation of the gaps between arrivals, by gamma-distributed gaps.

Not matched: the rate, which is chosen for the hardware (the trace has 5.5 requests/s), its slow rise and fall over the
hour (the index of dispersion in 60 s windows is 16 there, and near that of a renewal process, CV², here), and any
dependence of one request on those before it.

    python scenarios/make_bundled_workload.py [AZURE_TRACE]

writes the file and, given the trace, prints how closely the two agree.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import cast

import numpy as np

from simcore.workload import OpenLoop, SyntheticWorkload, build_workload
from simcore.workload.describe import describe_trace
from simcore.workload.traces import read_trace

OUT = Path(__file__).with_name("bundled-workload.csv")
SEED = 2023
REQUESTS = 5_000
RATE_PER_S = 8.5

INTER_ARRIVAL_CV = 1.094
RANK_CORRELATION = 0.0728
PROMPT_TOKENS = {
    "min": 2, "p1": 29, "p5": 181, "p10": 207, "p15": 372, "p25": 396, "p35": 414, "p45": 984, "p50": 1020, "p75": 1189,
    "p85": 1876, "p90": 2734, "p95": 4083, "p99": 4142, "p99.9": 6179, "max": 14050,
}  # fmt: skip
OUTPUT_TOKENS = {
    "min": 7, "p1": 16, "p5": 41, "p10": 54, "p25": 85, "p50": 129, "p65": 217, "p70": 384, "p75": 395, "p90": 424,
    "p95": 451, "p99": 601, "p99.9": 954, "max": 1000,
}  # fmt: skip

PERCENTILES = (10, 20, 25, 40, 50, 60, 75, 80, 90, 95, 99)


def workload() -> SyntheticWorkload:
    """The bundled workload, as a scenario would state it."""
    return SyntheticWorkload.model_validate(
        {
            "requests": REQUESTS,
            "arrivals": {"name": "gamma", "rate_per_s": RATE_PER_S, "cv": INTER_ARRIVAL_CV},
            "lengths": {
                "name": "correlated",
                "prompt_tokens": {"name": "quantiles", "tokens": PROMPT_TOKENS},
                "output_tokens": {"name": "quantiles", "tokens": OUTPUT_TOKENS},
                "rank_correlation": RANK_CORRELATION,
            },
        }
    )


def csv_text() -> str:
    """The file's content. Arrivals are rounded to microseconds: the same bytes whatever a processor's last bit."""
    lines = ["arrival_s,prompt_tokens,output_tokens"]
    requests = cast(OpenLoop, build_workload(workload(), SEED, Path()))
    for batch in requests.batches():
        columns = (batch.arrival_ns, batch.prompt_tokens, batch.output_tokens)
        for arrival_ns, prompt, output in zip(*(column.tolist() for column in columns), strict=True):
            lines.append(f"{arrival_ns / 1e9:.6f},{prompt},{output}")
    return "\n".join(lines) + "\n"


def agreement(bundled_path: Path, azure_path: Path) -> str:
    """A table of both workloads; a quantile marked * was not among the stated parameters."""
    bundled, azure = read_trace(bundled_path), read_trace(azure_path)
    lines = [f"{'':26}{'Azure 2023':>12}{'bundled':>12}{'difference':>12}"]

    def compare(title: str, theirs: float | None, ours: float | None) -> None:
        if theirs is not None and ours is not None:
            lines.append(f"{title:26}{theirs:12.4g}{ours:12.4g}{ours / theirs - 1:12.1%}")

    for what in ("prompt_tokens", "output_tokens"):
        theirs, ours = getattr(azure, what), getattr(bundled, what)
        knots = PROMPT_TOKENS if what == "prompt_tokens" else OUTPUT_TOKENS
        for percent in PERCENTILES:
            mark = "" if f"p{percent}" in knots else " *"
            compare(f"{what} P{percent}{mark}", np.percentile(theirs, percent), np.percentile(ours, percent))
        compare(f"{what} mean *", theirs.mean(), ours.mean())
    theirs, ours = describe_trace(azure_path, azure), describe_trace(bundled_path, bundled)
    compare("rank correlation", theirs.rank_correlation, ours.rank_correlation)
    compare("inter-arrival CV", theirs.inter_arrival_cv, ours.inter_arrival_cv)
    compare("requests/s *", theirs.mean_rate_per_s, ours.mean_rate_per_s)
    for their_count, our_count in zip(theirs.burstiness, ours.burstiness, strict=True):
        title = f"dispersion in {our_count.window_s} s *"
        compare(title, their_count.index_of_dispersion, our_count.index_of_dispersion)
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Write the file; given the Azure trace, print the agreement."""
    parser = ArgumentParser(description=f"Write {OUT.name}, the workload of `make run`.")
    parser.add_argument("azure_trace", type=Path, nargs="?", help="print how closely this trace and the file agree")
    azure_trace: Path | None = parser.parse_args(arguments).azure_trace
    if azure_trace is not None and not azure_trace.is_file():
        parser.error(f"{azure_trace}: no such file")
    OUT.write_text(csv_text(), encoding="utf-8", newline="\n")
    print(f"wrote {OUT}")
    if azure_trace is not None:
        print(agreement(OUT, azure_trace))


if __name__ == "__main__":
    main()
