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
from textwrap import dedent

from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

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
from tools.unpaged_memory.address_space import AddressSpace, Buddy, FirstFit  # noqa: E402
from tools.unpaged_memory.fragmentation import MemoryUse  # noqa: E402

REQUESTS = 1500
PARTS = ("token_states", "reserved", "internal", "external")
HYBRID = ("mistral-7b", "gpt-oss-20b", "gpt-oss-120b", "gemma-3-27b")


def document(data: Path) -> Iterator[str]:
    """The lines of the document."""
    yield prose(
        """
        # KV memory

        Made by `tools/memory_results.py`, figures and all.

        ## Where the memory goes

        `servetwin memory SCENARIO [--json] [--set KEY=VALUE]` shows every term of one accelerator's memory, the blocks
        that are left, how many requests of the workload's mean and P99 length and of the longest served fit, what
        bounds their number, and which single setting would let more run. Nothing is simulated.
        """
    )
    yield from quickstart()
    yield prose(
        """
        The terms are those of vLLM: the usable share of the device's memory, less weights, less the largest live set
        of a full step, less what the process takes, is cut into blocks. Ranks of tensor parallelism share matrices and
        heads; norms, routers, learned positions and projections down to a latent are held whole by each. Where there
        are pipeline stages, each has its terms, and the one with the fewest blocks decides, as every block takes its
        part on each. Data groups and context ranks have blocks each, which are counted together; a request stays in
        its data group, and one that needs more blocks than a group has is rejected. Neither has a request blocks of
        two tenants with `tenant_shares`: what fits is counted where one request fits. With `num_gpu_blocks` the terms
        are shown all the same, and the blocks are those given. With `memory.reservation` the table also says for how
        many tokens a request reserves memory, and as many fit as reserve it.

        What fits is counted in blocks that requests are admitted into: `watermark_share` stays free when one is
        admitted beside others, and `scheduler.preemption.reserved_blocks` are no room for less urgent levels, of which
        the report says apart how many fit if all are of the least urgent one. Requests grow into those blocks all the
        same, so that beside them more may run whose outputs are long.

        ## Bytes

        A token leaves, in every layer, keys and values of all KV heads (multi-head, grouped-query and multi-query
        attention), or one latent and one rotary key (multi-head latent attention). A layer of linear attention takes
        none: a request has a state there, of one size at any context. Bytes per token, all layers:

        | model | bf16 | fp8 | int8 | int4 |
        |---|---:|---:|---:|---:|
        """
    )
    for model, sizes in kv_bytes_table():
        yield f"| {model} | {' | '.join(f'{size:,}' for size in sizes)} |"
    yield prose(
        """

        Scales are part of the bytes. An fp8 cache has one scale per layer, which is nothing per token, as in vLLM. An
        int8 cache has an fp32 scale per token and head, for keys and for values (vLLM's `int8_per_token_head`). An int4
        cache has a scale and a zero point of 16 bits for 32 numbers: 32 tokens of a key channel, 32 channels of a value
        (KIVI, arXiv:2402.02750; its group size is recalled). The 128 last tokens that KIVI keeps in 16 bits are not
        counted. A block shorter than a group has scales of its own, so that int4 takes more of a small block than the
        table says. `precision.kv_scales` and `kv_group_size` say otherwise. Attention reads scales as well, so they
        count in the price of a step.

        Layers that share one cache (cross-layer attention, Brandon et al., arXiv:2405.12981) are stated by
        `memory.kv_sharing_layers`.

        ## States of linear attention

        A request of Qwen3-Next or Qwen3.5 has a state in every layer of linear attention: numbers of 32 bits, and the
        last inputs of a convolution in 16. Memory for as many states as requests may run is set aside, a term of its
        own in the table of such a model, and part of what bounds `max_running_requests`. So do TensorRT-LLM and, by a
        share of the memory, SGLang; vLLM takes a state from the pool of blocks when a request comes (recalled), so
        that with fewer requests than may run it has more blocks than are counted here.

        States are neither kept nor moved. Such models are refused with `memory.tiers`, with preemption by `swap`,
        with `cluster.context_parallel`, and with `memory.prefix_caching` where requests have content in common, as in
        sessions and with `workload.samples`. Where they have none a prefix cache finds nothing, not even what a
        preempted request had: all of it is computed again.

        ## Sliding windows

        An engine gives back blocks that a sliding window has left. vLLM's hybrid manager puts layers into KV cache
        groups: all layers of a group share block tables, and all groups share one pool, so every group's block has the
        same size. Where a model has several kinds of layers, each kind is cut into groups of as many layers as the
        rarest kind has. A request of n tokens holds, in a group with window w and blocks of b tokens, its blocks less
        the max(0, n - w) / b whole ones (rounded down) that its next token no longer sees.

        A block that has left its window is free but still cached. A prompt is found in the cache as far as every group
        can serve it: a group of full layers must have all blocks of that prefix, a sliding one just those that the next
        token sees, so a long prefix is found of which the window's part is there and its beginning is not.

        The simulator does the same, block by block. Where it makes no difference which blocks a request has (the
        workload does not say what requests have in common, and the prefix cache, if any, is the plain one) it only
        counts them; then a preempted request of a model with windows finds nothing of what it had. Windows release
        nothing with a radix index, whose tree keeps all blocks of a prefix (SGLang has another tree for windows, which
        is not modelled), with tiers below GPU memory, and where blocks of a model's kinds of layers hold different
        numbers of tokens. One block then holds its tokens for all layers (so `num_gpu_blocks` is not the number in an
        engine's log), and the summary says why, and how far capacity is off at the mean length of the workload.
        Requests that fit an H100 SXM (two for gpt-oss-120b), by their length:

        | model | groups | 1,000 tokens, all kept | windows released | 8,000 tokens, all kept | windows released |
        |---|---|---:|---:|---:|---:|
        """
    )
    yield from hybrid_rows()
    yield prose(
        """

        Short requests of gemma-3-27b hold more with windows released, since its groups are padded to 10 layers.

        ## Parallel samples

        A request with `workload.samples` above 1 asks for several outputs to one prompt. To the scheduler each sample
        is a request of its own, with its own slot and its own blocks for what it generates, as in vLLM V1: the first
        computes the prompt and the others find it in the prefix cache, in the same step if it has room, and compute
        what follows the last full block. So without `memory.prefix_caching` each computes all of the prompt. All
        samples go to one replica. A request gets its first token with that of any sample and is finished when all are;
        its TPOT is the mean of theirs, its output that of all together, and what samples find of each other is no cache
        hit. If admission or the context limit turns one away, the request counts as rejected, while the other samples
        run. Output lengths of samples know nothing of each other. A radix index is refused, because requests of one
        step do not find each other there (SGLang, as recalled, computes the prompt alone first), and so are tiers,
        closed loops, sessions and streams.

        No workload does beam search. The block managers can let one sequence go on from another (`fork`): both hold the
        full blocks, and the last, partly filled one is copied.

        ## Against what engines stated

        | what | stated KV tokens | ours | error |
        |---|---:|---:|---:|
        """
    )
    yield from stated_rows(data)
    yield from tabulated(data)
    yield from fragmentation(data)


def prose(text: str) -> str:
    """Text with the indentation of the source taken off; one blank line stays before it, if there are any."""
    start = "\n" if text.startswith("\n\n") else ""
    return start + dedent(text).strip("\n") + ("" if text.rstrip().endswith("|") else "\n")


def quickstart() -> Iterator[str]:
    """What the command prints of the bundled scenario."""
    simulation = prepare(ROOT / "scenarios" / "quickstart.yaml")
    stream = io.StringIO()
    report = memory_report(simulation.memory, simulation.workload, simulation.max_context_tokens)
    print_memory(simulation, report, Console(file=stream, width=100, highlight=False))
    yield "```"
    yield from (line.rstrip() for line in stream.getvalue().strip().splitlines())
    yield "```\n"


def hybrid_rows() -> Iterator[str]:
    """How many requests models with sliding layers hold, with and without release."""
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


def stated_rows(data: Path) -> Iterator[str]:
    """Capacities that were logged, observed or published."""
    logged, least = logged_capacity(data), least_capacity(data)
    yield (
        "| vLLM 0.19, Llama-3.1-8B, RTX 4090, logged "
        f"| {logged.stated_tokens:,} | {logged.tokens:,} | {logged.error:+.1%} |"
    )
    yield (
        "| vLLM 0.19, Qwen3-32B, 2 RTX PRO 6000: not logged, but so many were held at once "
        f"| at least {least.stated_tokens:,} | {least.tokens:,} | consistent |"
    )
    shares = []
    for row, capacity, share in published_capacities():
        shares.append(share)
        what = f"vLLM paper, table 1 (recalled): {row['model']}, {row['tensor_parallel']} {row['accelerator']}"
        yield f"| {what} | {capacity.stated_tokens:,} | {capacity.tokens:,} | {capacity.error:+.1%} |"
    yield prose(
        f"""

        The paper's slots and the weights alone take {shares[0]:.1%} and {shares[1]:.1%} of the devices, so its servers
        were given more than the default of 90%, at which ours are computed. Nothing was adjusted to these rows.
        """
    )


def tabulated(data: Path) -> Iterator[str]:
    """DistServe's table in brief."""
    rows = list(tabulated_capacities(data))
    errors = [row.capacity.error for row in rows]
    total = load_accelerator("a100-sxm-80gb").memory_bytes
    rooms = [row.room_bytes / total for row in rows]
    worst = min(rows, key=lambda row: row.capacity.error)
    yield prose(
        f"""
        DistServe's simulator has a table of KV tokens for OPT-13B and OPT-66B on A100 80 GB over {len(rows)} layouts of
        tensor and pipeline parallel ranks; with what share of memory it was made is not known. At 90%, ours is off by
        {median(errors):+.1%} in the median, {max(errors):+.1%} to {min(errors):+.1%}, the last for {worst.model} with
        {worst.ranks} x {worst.stages} ranks, where KV is a small rest. What does not depend on that share is the sum of
        our weights per rank and its tokens at our bytes per token: over all layouts that is {min(rooms):.1%} to
        {max(rooms):.1%} of the device, so the split over ranks and stages agrees.
        """
    )


def fragmentation(data: Path) -> Iterator[str]:
    """Figure 2 of the vLLM paper."""
    published = PUBLISHED["paged_attention_figure_2"]
    sent = sharegpt_requests(data, SHORT_PROMPT, REQUESTS)
    prompt, output = (sum(request[part] for request in sent) / len(sent) for part in (1, 2))
    yield prose(
        f"""
        ## What paging gains

        The share of KV memory that holds token states, for OPT-13B on an A100 40 GB under lengths of ShareGPT: figure 2
        of the vLLM paper. Every contiguous scheme gives a request one piece of memory for its whole life: as long as a
        request may be, its prompt and its output rounded up to a power of two, or just what it will need. Pieces come
        from a buddy allocator over slots of one token. Paged memory has blocks of 16.

        This is a replay of its own (`tools/unpaged_memory/fragmentation.py`), as the simulator's scheduler has no
        contiguous memory: continuous batching, first come first served, whole prompts, preemption of the last by
        recomputation. Steps are priced by the simulator's dense operators, without attention. {REQUESTS:,} requests
        arrive as a Poisson process, faster than they can be served, and steps count in which a request finds no
        memory. Slots are what the capacity above leaves. Of the file's requests those of at most {SHORT_PROMPT}
        prompt tokens are drawn, which on average have {prompt:.0f} prompt and {output:.0f} output tokens; the paper
        states 161 and 338 (recalled), while prompts of the file are whole conversations.
        """
    )
    yield from figure_table(figure_2(data, SHORT_PROMPT, REQUESTS, Buddy), published["percent"])
    yield f"\nPublished: {published['source']}.\n"
    yield "Internal: reserved but never filled. External: free, or lost to the rounding of the allocator.\n"
    others: tuple[tuple[str, int, Callable[[int], AddressSpace]], ...] = (
        ("all requests that OPT's context of 2,048 holds, buddy allocator", 2048, Buddy),
        ("at most 512 prompt tokens, first fit instead of buddies", SHORT_PROMPT, FirstFit),
        ("all requests, first fit", 2048, FirstFit),
    )
    yield "On what it depends, token states in percent:\n"
    yield "| requests | longest | power of two | exact | paged |"
    yield "|---|---:|---:|---:|---:|"
    for title, longest, space in others:
        uses = figure_2(data, longest, REQUESTS, space).values()
        yield f"| {title} | {' | '.join(f'{use.token_states:.1%}' for use in uses)} |"
    yield prose(
        """

        With long prompts the buddy allocator makes the power-of-two scheme hardly better than the longest one: a prompt
        plus a rounded output is rounded up once more. First fit loses far less than buddies, so the paper's figures
        for the two better schemes are as much about that allocator as about reservation.
        """
    ).rstrip("\n")


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
    path = ROOT / "docs" / "results" / "memory.md"
    text = "\n".join(document(data)) + "\n"
    if check:
        return int(not path.exists() or path.read_text(encoding="utf-8") != text)
    path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
