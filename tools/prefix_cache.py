"""Write ``docs/results/prefix-cache.md`` and figure: ``SERVETWIN_DATA=FOLDER python tools/prefix_cache.py [--check]``.

It takes two minutes on one core. The folder holds ``traces/mooncake``, as ``servetwin trace fetch`` puts it there. With
``--check`` nothing is written, and the exit code is 1 if document or figure differ from what would be.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from experiments.cache_replay import CachedPrompt, prompts_of, replay_cache  # noqa: E402
from policies.registry import policy_class, policy_names  # noqa: E402
from simcore.models import load_model  # noqa: E402
from simcore.workload.traces import read_trace  # noqa: E402
from tools.publishing import publish  # noqa: E402

TRACES = {"conversation": "conversation_trace.jsonl", "synthetic": "synthetic_trace.jsonl"}
CAPACITIES = tuple(round(tokens * 1e6) for tokens in (0.5, 1, 2, 3, 5, 8, 12, 20, 30, 50))
CLAIRVOYANT = "clairvoyant"
POLICIES = (*(name for name in policy_names("eviction") if name != "priority"), CLAIRVOYANT)
MODEL = "llama-3.1-8b"
FIGURE = "figures/prefix-cache.svg"

Curves = dict[str, list[float]]


def replayed(trace: Path, capacities: Sequence[int] = CAPACITIES) -> tuple[float, Curves]:
    """Of a trace the hit rate without a bound, and for each policy the hit rate at each capacity, in tokens."""
    found = read_trace(trace)
    assert found.contents is not None
    assert found.block_tokens is not None
    block_tokens = found.block_tokens
    prompts: list[CachedPrompt] = prompts_of(found.contents, block_tokens)
    spec = load_model(MODEL)

    def hit_rate(name: str, capacity: int | None) -> float:
        eviction = None if name == CLAIRVOYANT else policy_class("eviction", name)()
        blocks = None if capacity is None else capacity // block_tokens
        return replay_cache(prompts, block_tokens, blocks, eviction, spec).hit_rate or 0.0

    return hit_rate("lru", None), {name: [hit_rate(name, tokens) for tokens in capacities] for name in POLICIES}


def table(most: float, rates: Curves, capacities: Sequence[int] = CAPACITIES) -> Iterator[str]:
    """One row per capacity, hit rates in percent."""
    yield "| capacity, million tokens | " + " | ".join(rates) + " |"
    yield "|---:|" + "---:|" * len(rates)
    for place, tokens in enumerate(capacities):
        yield f"| {tokens / 1e6:g} | " + " | ".join(f"{100 * rate[place]:.1f}" for rate in rates.values()) + " |"
    yield "| unbounded | " + " | ".join(f"{100 * most:.1f}" for _ in rates) + " |"


def draw(results: dict[str, tuple[float, Curves]], path: Path) -> None:
    """One panel per trace, capacity on a logarithmic axis."""
    matplotlib.rcParams["svg.hashsalt"] = "servetwin"
    figure, panels = pyplot.subplots(1, len(results), figsize=(9, 3.6), sharey=True, layout="constrained")
    for panel, (name, (most, rates)) in zip(panels, results.items(), strict=True):
        for policy, rate in rates.items():
            style = {"color": "black", "linestyle": "--"} if policy == CLAIRVOYANT else {"marker": "o", "markersize": 3}
            panel.plot([tokens / 1e6 for tokens in CAPACITIES], [100 * each for each in rate], label=policy, **style)
        panel.axhline(100 * most, color="grey", linewidth=0.8)
        panel.set_xscale("log")
        panel.set_xlabel("capacity (million tokens)")
        panel.set_title(f"Mooncake {name}", fontsize=10)
    panels[0].set_ylabel("prompt tokens found (%)")
    panels[-1].legend(fontsize=8)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def document(results: dict[str, tuple[float, Curves]]) -> str:
    """The page."""
    lines = [
        "# Hit rate against capacity",
        "",
        fill(
            "Made by `tools/prefix_cache.py`, which compares with `--check`. "
            "Which share of the prompt tokens of two traces a prefix cache finds "
            "by its capacity and by the policy that says what it gives up. The traces (Mooncake, FAST 2025) name the "
            "blocks of 512 tokens of each prompt; prompts are replayed one after another, none at the same time as "
            "another. `clairvoyant` gives up what is needed farthest in the future (Belady 1966): no policy finds more "
            "blocks. Of tokens another might find a few more, since the last block of a prompt may be filled in part. "
            f"`cost-aware` weighs blocks by what computing them again takes in {MODEL}. `priority` equals `lru` "
            "here, as the traces have no priorities.",
            width=120,
        ),
        "",
        f"![Hit rate against capacity]({FIGURE})",
    ]
    for name, (most, rates) in results.items():
        lines += ["", f"## {name}", "", *table(most, rates)]
    return "\n".join(lines) + "\n"


def main(check: bool) -> int:
    """Write document and figure, or compare; returns the exit code."""
    data = Path(os.environ.get("SERVETWIN_DATA", ROOT.parent / "shared" / "data"))
    results = {name: replayed(data / "traces" / "mooncake" / file) for name, file in TRACES.items()}

    def write(folder: Path) -> None:
        draw(results, folder / FIGURE)
        (folder / "prefix-cache.md").write_text(document(results), encoding="utf-8")

    return publish(write, check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
