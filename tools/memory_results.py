"""Write ``docs/results/memory.md``: ``SERVETWIN_DATA=FOLDER python tools/memory_results.py [--check]``, seconds.

The folder holds the measured data that ``tools/memory_cases.py`` names. With ``--check`` nothing is written, and the
exit code is 1 if the document differs from what would be.
"""

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from experiments.unpaged_memory.address_space import AddressSpace, Buddy, FirstFit  # noqa: E402
from experiments.unpaged_memory.fragmentation import MemoryUse  # noqa: E402
from servetwin.api import prepare  # noqa: E402
from servetwin.memory_command import print_memory  # noqa: E402
from simcore.build.memory_report import memory_report  # noqa: E402
from simcore.hardware import load_accelerator  # noqa: E402
from simcore.memory.kv_bytes import KvFormat  # noqa: E402
from simcore.memory.kv_groups import kv_cache_layout  # noqa: E402
from simcore.models import load_model  # noqa: E402
from tools.memory_cases import (  # noqa: E402
    BLOCK,
    PUBLISHED,
    SHORT_PROMPT,
    figure_2,
    kv_bytes_table,
    least_capacity,
    logged_capacity,
    published_capacities,
    sharegpt_requests,
    tabulated_capacities,
)
from tools.page_template import filled  # noqa: E402
from tools.publishing import publish_page  # noqa: E402

REQUESTS = 1500
PARTS = ("token_states", "reserved", "internal", "external")
HYBRID = ("mistral-7b", "gpt-oss-20b", "gpt-oss-120b", "gemma-3-27b")


def document(data: Path) -> str:
    """The whole document."""
    return filled(
        Path(__file__).with_suffix(".md"),
        quickstart=quickstart(),
        kv_bytes="\n".join(kv_bytes_rows()),
        hybrid="\n".join(hybrid_rows()),
        **stated(data),
        **tabulated(data),
        **fragmentation(data),
    )


def quickstart() -> str:
    """What the command prints of the bundled scenario."""
    simulation = prepare(ROOT / "scenarios" / "quickstart.yaml")
    stream = io.StringIO()
    report = memory_report(simulation.memory, simulation.workload, simulation.max_context_tokens)
    print_memory(simulation, report, Console(file=stream, width=100, highlight=False))
    return "\n".join(("```", *(line.rstrip() for line in stream.getvalue().strip().splitlines()), "```"))


def kv_bytes_rows() -> Iterator[str]:
    """Bytes per token of models, by format."""
    yield "| model | bf16 | fp8 | int8 | int4 |"
    yield "|---|---:|---:|---:|---:|"
    for model, sizes in kv_bytes_table():
        yield f"| {model} | {' | '.join(f'{size:,}' for size in sizes)} |"


def hybrid_rows() -> Iterator[str]:
    """How many requests models with sliding layers hold, with and without release."""
    yield "| model | groups | 1,000 tokens, all kept | windows released | 8,000 tokens, all kept | windows released |"
    yield "|---|---|---:|---:|---:|---:|"
    for model in HYBRID:
        ranks = 2 if model == "gpt-oss-120b" else 1
        simulation = prepare(
            {
                "model": model,
                "cluster": {"accelerator": "h100-sxm", "tensor_parallel": ranks},
                "memory": {"prefix_caching": True, "prefix_cache": {"index": "radix"}},
                "workload": {
                    "requests": 1,
                    "arrivals": {"name": "constant", "rate_per_s": 1},
                    "prompt_tokens": {"name": "fixed", "tokens": 1},
                    "output_tokens": {"name": "fixed", "tokens": 1},
                },
            }
        )
        plan = simulation.memory
        groups: dict[str, int] = {}
        for group in kv_cache_layout(load_model(model), KvFormat(), BLOCK, ranks).groups:
            name = f"{len(group.layers)} {group.kind}" + (f" ({group.window_tokens})" if group.window_tokens else "")
            groups[name] = groups.get(name, 0) + 1
        shown = ", ".join(f"{count} of {name}" for name, count in groups.items())
        fits = [
            plan.requests_that_fit(tokens, releasing=releasing)
            for tokens in (1000, 8000)
            for releasing in (False, True)
        ]
        yield f"| {model} | {shown} | {' | '.join(f'{fit:,.1f}' for fit in fits)} |"


def stated(data: Path) -> dict[str, str]:
    """Capacities that were logged, observed or published, and the shares of the device that the published take."""
    logged, least = logged_capacity(data), least_capacity(data)
    rows = [
        "| what | stated KV tokens | ours | error |",
        "|---|---:|---:|---:|",
        "| vLLM 0.19, Llama-3.1-8B, RTX 4090, logged "
        f"| {logged.stated_tokens:,} | {logged.tokens:,} | {logged.error:+.1%} |",
        "| vLLM 0.19, Qwen3-32B, 2 RTX PRO 6000: not logged, but so many were held at once "
        f"| at least {least.stated_tokens:,} | {least.tokens:,} | consistent |",
    ]
    shares = []
    for row, capacity, share in published_capacities():
        shares.append(f"{share:.1%}")
        what = f"vLLM paper, table 1 (recalled): {row['model']}, {row['tensor_parallel']} {row['accelerator']}"
        rows.append(f"| {what} | {capacity.stated_tokens:,} | {capacity.tokens:,} | {capacity.error:+.1%} |")
    first, second = shares
    return {"stated": "\n".join(rows), "first_share": first, "second_share": second}


def tabulated(data: Path) -> dict[str, str]:
    """DistServe's table in brief."""
    rows = list(tabulated_capacities(data))
    errors = [row.capacity.error for row in rows]
    total = load_accelerator("a100-sxm-80gb").memory_bytes
    rooms = [row.room_bytes / total for row in rows]
    worst = min(rows, key=lambda row: row.capacity.error)
    return {
        "layouts": str(len(rows)),
        "median_error": f"{median(errors):+.1%}",
        "highest_error": f"{max(errors):+.1%}",
        "lowest_error": f"{min(errors):+.1%}",
        "worst_layout": f"{worst.model} with {worst.ranks} x {worst.stages} ranks",
        "least_room": f"{min(rooms):.1%}",
        "most_room": f"{max(rooms):.1%}",
    }


def fragmentation(data: Path) -> dict[str, str]:
    """Figure 2 of the vLLM paper."""
    published = PUBLISHED["paged_attention_figure_2"]
    sent = sharegpt_requests(data, SHORT_PROMPT, REQUESTS)
    prompt, output = (sum(request[part] for request in sent) / len(sent) for part in (1, 2))
    return {
        "requests": f"{REQUESTS:,}",
        "short_prompt": str(SHORT_PROMPT),
        "mean_prompt": f"{prompt:.0f}",
        "mean_output": f"{output:.0f}",
        "figure_2": "\n".join(figure_table(figure_2(data, SHORT_PROMPT, REQUESTS, Buddy), published["percent"])),
        "published": published["source"],
        "variants": "\n".join(variants(data)),
    }


def variants(data: Path) -> Iterator[str]:
    """The same figure for longer prompts and another allocator."""
    others: tuple[tuple[str, int, Callable[[int], AddressSpace]], ...] = (
        ("all requests that OPT's context of 2,048 holds, buddy allocator", 2048, Buddy),
        (f"at most {SHORT_PROMPT} prompt tokens, first fit instead of buddies", SHORT_PROMPT, FirstFit),
        ("all requests, first fit", 2048, FirstFit),
    )
    yield "| requests | longest | power of two | exact | paged |"
    yield "|---|---:|---:|---:|---:|"
    for title, longest, space in others:
        uses = figure_2(data, longest, REQUESTS, space).values()
        yield f"| {title} | {' | '.join(f'{use.token_states:.1%}' for use in uses)} |"


def figure_table(uses: dict[str, MemoryUse], published: dict[str, dict[str, float]]) -> Iterator[str]:
    """Ours beside the published shares."""
    titles = [f"{part.replace('_', ' ')}, published | ours" for part in PARTS]
    yield f"| scheme | {' | '.join(titles)} | requests at once |"
    yield f"|---|{'---:|' * 9}"
    for name, use in uses.items():
        cells = [f"{published[name][part]:.1f}% | {getattr(use, part):.1%}" for part in PARTS]
        yield f"| {name} | {' | '.join(cells)} | {use.running_requests:.1f} |"


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    data = Path(os.environ.get("SERVETWIN_DATA", ROOT.parent / "shared" / "data"))
    return publish_page(ROOT / "docs" / "results" / "memory.md", document(data), check)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
