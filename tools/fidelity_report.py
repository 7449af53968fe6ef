"""Write ``docs/results/fidelity.md`` and its figures: ``make fidelity``, about two minutes on two cores.

With ``python tools/fidelity_report.py --check`` nothing is written, and the exit code is 1 if the document or a figure
differs from what would be.

The measured data are no part of this repository; they are looked for where the environment variable
``SERVETWIN_DATA`` points, else in ``shared/data`` beside the checkout.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dashboard.fidelity_wording import shown  # noqa: E402
from fidelity.evaluation import Fidelity, evaluate  # noqa: E402
from fidelity.fitted import FITTED  # noqa: E402
from fidelity.replay import Replayed  # noqa: E402
from fidelity.request_runs import REQUESTS  # noqa: E402
from fidelity.tables import Table, tables  # noqa: E402
from simcore.core.errors import ServetwinError  # noqa: E402
from tools.fidelity_figures import draw_bias, draw_replay, draw_scatter  # noqa: E402
from tools.publishing import publish  # noqa: E402

DATA = Path(os.environ.get("SERVETWIN_DATA", ROOT.parent / "shared" / "data"))
DOCUMENT = "fidelity.md"
FIGURES = "figures"
WIDTH = 120
REPLAYS = 12
BANDED_EVERY = 7
"""No multiple or divisor of the numbers of concurrencies and setups in a row of the file."""

INTRODUCTION = (
    "Made by `make fidelity` (`tools/fidelity_report.py`), which runs what `servetwin fidelity` runs: measured runs of "
    "real engines are repeated as scenarios, and what the simulator says is compared with what was measured. An error "
    "is (simulated - measured) / measured; median, mean and P90 are of its absolute value, and the bias is its median "
    "with its sign, below zero where the simulator is too fast.",
    f"`in band` is the share of measured values inside the run's 80% uncertainty band "
    f"([outputs.md](../reference/outputs.md)), over every {BANDED_EVERY}th engine run in the order of the "
    f"file, since a band takes {REPLAYS} further runs. Its "
    "errors are those of kernel fits at points that they had not seen, stated ones of roofline prices and host "
    "constants, how tokens spread over experts, and one of whole steps, as large as the errors left on the rows that "
    "host constants were fitted on. None is fitted to other rows. Bands of rows of an unknown harness are drawn over "
    "setups too: the token budget below or the engine preset's, a host that works while kernels run or one that does "
    "not (`fidelity/harness.py`). What no error stands for, bands cannot hold: models, engines or setups that "
    "are simulated otherwise than they were run.",
    "Engine runs with a known harness are repeated as that harness ran them: a closed loop at the row's concurrency, "
    "lengths uniform in 0.8 to 1 of those stated, ten requests per client that start together on an idle server, so "
    "that mean TTFT contains the opening burst. The warm-up requests before them are answered in full and leave "
    "nothing behind in a simulated server without prefix caching, so they are not simulated. Slots, token budget, KV "
    "precision, memory share, kernels of experts and graph sizes are those of the harness's own scripts where these "
    "are known (`fidelity/harness.yaml`). Rows of an unknown harness are run as a public tool whose files most "
    "of them name would run them, and shown apart: at the stated lengths, as many slots as clients, and a token budget "
    "that grows with prompts; the file states the source of each choice.",
    "Rows that do not state the version of the engine were measured from October to December 2025. Of those of SGLang "
    "on B200 most took seconds to answer what version 0.5.9 answers in tenths of a second, at 32 clients and more or "
    "at prompts of 8,192 tokens, as if kernels had been compiled while they were measured, which is not simulated. "
    "Mixtures of which the version is stated are therefore also summed up by themselves.",
    "The median error of mixtures' mean TTFT came within its target of 15% when prompts of TensorRT-LLM's data groups "
    "had to wait for each other, as the scripts have them do (`attention_dp_config`, here the batching policy "
    "`group-balanced`); without that those rows were far too fast, and it was above the target. On H100 "
    "and H200, and over rows that state the version, it was below before, but rows were parted in these two ways once "
    "their errors had been seen. "
    "Means are far above medians, as few rows are off by a multiple: nine of GPT-OSS-120B on H100 at 512 clients state "
    "the TPOT that others reach at 4 to 64, beside a mean TTFT of about 20 s or more, as of a server with far fewer "
    "slots than clients. Nothing says so, and they are counted as they are. "
    "What is left depends on the engine's version more than on lengths, or on concurrency up to 64. Besides the rows "
    "above it is vLLM's on Kimi-K2.5 on B200 and on GPT-OSS-120B on H100, where prompts are too fast at every "
    "concurrency though decodes are nearly right. Tried, and left out since they change little or make other rows "
    "worse: tokens padded to the width of Marlin's kernels and summed over ranks at that width, other skews of "
    "routing, and kernels of the very versions that rows state (SGLang 0.5.6 to 0.5.9, vLLM 0.12 to 0.18, TensorRT-LLM "
    "1.0 and 1.2), which older releases of the same tables hold: decodes of mixtures came out far too slow.",
    "Qwen3.5-397B-A17B came last. By its kernels alone, before its errors were looked at, its rows were off by 46% in "
    "TTFT and 19% in TPOT in the median, all of them too fast. What was looked for then: SGLang 0.5.9 multiplies by "
    "each of its checkpoint's projections by itself, and gates the shared expert in four kernels; and a step with "
    "prompts takes a constant time more, the same at 1,024 and at 8,192 tokens, which its source does not explain, and "
    "which is fitted to two rows. Rows of four B200 in fp8 whose experts are not dealt out are left out: the harness "
    "has such a configuration with multi-token prediction alone, and they are faster than eight B200.",
    "Kernels are priced by the newest profile that is shipped for the accelerator (`pricing.profile: auto`, "
    "[kernel-fits.md](kernel-fits.md)), of the row's own engine where there is one, else of vLLM, and by roofline "
    "where there is none.",
    f"Constants that were fitted to measured runs: {FITTED[0].lower()}{FITTED[1:]}",
)


def main(check: bool) -> int:
    """Write the document and its figures, or compare; returns the exit code."""
    try:
        fidelity = evaluate(
            (DATA / "measured" / "engine_runs.csv",),
            tuple(sorted(path.parent for path in (DATA / "measured" / "vllm-per-request").glob(f"*/{REQUESTS}"))),
            DATA,
            replays=REPLAYS,
            banded_every=BANDED_EVERY,
        )
    except ServetwinError as error:
        print(f"tools/fidelity_report.py: {error}", file=sys.stderr)
        return 2

    def write(folder: Path) -> None:
        (folder / FIGURES).mkdir(exist_ok=True)
        (folder / DOCUMENT).write_text("\n".join(_lines(fidelity, folder)) + "\n", encoding="utf-8")

    return publish(write, check)


def _lines(fidelity: Fidelity, folder: Path) -> Iterator[str]:
    yield "# Fidelity"
    for paragraph in INTRODUCTION:
        yield ""
        yield fill(paragraph, WIDTH, break_on_hyphens=False)
    for title, path in _figures(fidelity, folder / FIGURES):
        yield ""
        yield f"![{title}]({path.relative_to(folder).as_posix()})"
    for table in tables(fidelity):
        yield ""
        yield from _markdown(table)


def _figures(fidelity: Fidelity, folder: Path) -> Iterator[tuple[str, Path]]:
    """Draw all figures; yields the title and the file of each."""
    known = [
        outcome
        for outcome in (fidelity.engine_runs.outcomes if fidelity.engine_runs else ())
        if outcome.case.labels["harness"] == "known"
    ]
    if known:
        draw_scatter(known, folder / "fidelity-engine-runs.svg")
        yield "Engine runs of a known harness, simulated over measured", folder / "fidelity-engine-runs.svg"
        draw_bias(known, folder / "fidelity-bias.svg")
        yield "Median error by concurrency", folder / "fidelity-bias.svg"
    for run in fidelity.replayed:
        if isinstance(run, Replayed):
            path = folder / f"fidelity-{run.labels['run'].lower()}.svg"
            draw_replay(run, path)
            yield f"{run.labels['run']}, measured and simulated", path


def _markdown(table: Table) -> Iterator[str]:
    yield f"## {table.title}"
    yield ""
    if table.note:
        yield fill(table.note, WIDTH, break_on_hyphens=False)
        yield ""
    yield f"| {' | '.join(table.columns)} |"
    yield f"|{'---|' + '---:|' * (len(table.columns) - 1)}"
    for row in table.rows:
        yield f"| {' | '.join(shown(cell) for cell in row)} |"


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
