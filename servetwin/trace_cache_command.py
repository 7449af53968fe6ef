"""``servetwin trace cache``: what a prefix cache of some size would find in a trace."""

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.cache_replay import CacheReplay, prompts_of, replay_cache, replay_radix_cache
from policies.registry import policy_names
from servetwin.console import console, plain_table, print_table
from servetwin.options import AsJson
from simcore.core.errors import FileError, InputError, UnknownNameError
from simcore.models import load_model
from simcore.scenario.policy_choice import build_policy
from simcore.workload.traces import Columns, read_trace

CLAIRVOYANT = "clairvoyant"
INDEXES = ("hash", "radix")
_MOST_DIGITS = 30


def cache_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace with hash ids, such as Mooncake's.")],
    capacity_tokens: Annotated[
        list[str] | None,
        typer.Option(metavar="N", help="Tokens that the cache holds, as 3000000 or 3e6; may be repeated."),
    ] = None,
    eviction: Annotated[
        str, typer.Option(metavar="NAME", help=f"A policy of 'servetwin policies eviction', or {CLAIRVOYANT}.")
    ] = "lru",
    index: Annotated[
        str, typer.Option(metavar="NAME", help="How blocks are found: hash, as in vLLM, or radix, as in SGLang.")
    ] = "hash",
    model: Annotated[str, typer.Option(help="By whose costs cost-aware policies weigh.")] = "llama-3.1-8b",
    format: Annotated[str, typer.Option(help="The trace's format; 'auto' tells it from the columns.")] = "auto",
    hash_ids: Annotated[str | None, typer.Option(help="Column of the ids of each prompt's blocks.")] = None,
    block_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of such a block.")] = None,
    as_json: AsJson = False,
) -> None:
    """Tell what a prefix cache would find in a trace."""
    names = (*policy_names("eviction"), CLAIRVOYANT)
    if eviction not in names:
        raise UnknownNameError("--eviction", eviction, names)
    if index not in INDEXES:
        raise UnknownNameError("--index", index, INDEXES)
    if index == "radix" and eviction == CLAIRVOYANT:
        raise InputError("--index", index, f"hash with --eviction {CLAIRVOYANT}, which gives up single blocks")
    capacities = [_whole_tokens(text) for text in capacity_tokens or ()]
    spec = load_model(model)
    columns = None if hash_ids is None else Columns(hash_ids=hash_ids)
    trace = read_trace(file, format, columns, sort=True, skip_failed=True, block_tokens=block_tokens)
    if trace.contents is None or trace.block_tokens is None:
        raise FileError(file, "has no hash ids, which say what prompts have in common")
    size = trace.block_tokens
    for capacity in capacities:
        if capacity < size:
            raise InputError("--capacity-tokens", capacity, f"at least {size}, the tokens of a block of this trace")
    prompts = prompts_of(trace.contents, size)

    def replayed(capacity: int | None) -> CacheReplay:
        blocks = None if capacity is None else capacity // size
        if eviction == CLAIRVOYANT:
            return replay_cache(prompts, size, blocks, None, spec)
        chosen = build_policy("eviction", {"name": eviction}, "--eviction")
        replay = replay_cache if index == "hash" else replay_radix_cache
        return replay(prompts, size, blocks, chosen, spec)

    unbounded = replayed(None)
    rows = [_row(replayed(capacity), unbounded, capacity) for capacity in capacities]
    rows.append(_row(unbounded, unbounded, None))
    if as_json:
        facts = {"trace": str(file), "block_tokens": size, "index": index, "eviction": eviction}
        counts = {"requests": unbounded.requests, "prompt_tokens": unbounded.prompt_tokens}
        typer.echo(json.dumps({**facts, **counts, "caches": rows}, indent=2))
        return
    table = plain_table("capacity (tokens)", "hit tokens", "hit rate", "share of the most")
    for row in rows:
        size_shown = "unbounded" if row["capacity_tokens"] is None else f"{row['capacity_tokens']:,}"
        table.add_row(size_shown, f"{row['hit_tokens']:,}", _percent(row["hit_rate"]), _percent(row["share_of_most"]))
    print_table(table, console())
    prompt_tokens = f"{unbounded.prompt_tokens:,}"
    typer.echo(f"{unbounded.requests:,} prompts, {prompt_tokens} tokens, blocks of {size} tokens, {index}, {eviction}")


def _whole_tokens(text: str) -> int:
    """A whole number of tokens, also in scientific notation."""
    try:
        tokens = Decimal(text)
    except InvalidOperation:
        tokens = Decimal("NaN")
    if not tokens.is_finite() or tokens.adjusted() > _MOST_DIGITS or tokens != tokens.to_integral_value():
        raise InputError("--capacity-tokens", text, "a whole number such as 3000000 or 3e6")
    return int(tokens)


def _row(replay: CacheReplay, unbounded: CacheReplay, capacity_tokens: int | None) -> dict[str, Any]:
    return {
        "capacity_tokens": capacity_tokens,
        "hit_tokens": replay.hit_tokens,
        "hit_rate": replay.hit_rate,
        "share_of_most": replay.hit_tokens / unbounded.hit_tokens if unbounded.hit_tokens else None,
    }


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
