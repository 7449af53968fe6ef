"""``servetwin trace cache``: what a prefix cache of some size would find in a trace."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from policies.registry import policy_names
from servetwin.console import console, plain_table, print_table
from simcore.errors import FileError, InputError, UnknownNameError
from simcore.memory.cache_replay import CacheReplay, prompts_of, replay_cache
from simcore.models import load_model
from simcore.scenario.policy_choice import build_policy
from simcore.workload.traces import Columns, read_trace

CLAIRVOYANT = "clairvoyant"


def cache_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace with hash ids, such as Mooncake's.")],
    capacity_tokens: Annotated[
        list[int] | None, typer.Option(metavar="N", help="Tokens that the cache holds; may be repeated.")
    ] = None,
    eviction: Annotated[
        str, typer.Option(metavar="NAME", help=f"A policy of 'servetwin policies eviction', or {CLAIRVOYANT}.")
    ] = "lru",
    model: Annotated[str, typer.Option(help="By whose costs cost-aware policies weigh.")] = "llama-3.1-8b",
    format: Annotated[str, typer.Option(help="The trace's format; 'auto' tells it from the columns.")] = "auto",
    hash_ids: Annotated[str | None, typer.Option(help="Column of the ids of each prompt's blocks.")] = None,
    block_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of such a block.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Tell what a prefix cache would find in a trace."""
    names = (*policy_names("eviction"), CLAIRVOYANT)
    if eviction not in names:
        raise UnknownNameError("--eviction", eviction, names)
    spec = load_model(model)
    columns = None if hash_ids is None else Columns(hash_ids=hash_ids)
    trace = read_trace(file, format, columns, sort=True, skip_failed=True, block_tokens=block_tokens)
    if trace.contents is None or trace.block_tokens is None:
        raise FileError(file, "has no hash ids, which say what prompts have in common")
    size = trace.block_tokens
    for capacity in capacity_tokens or ():
        if capacity < size:
            raise InputError("--capacity-tokens", capacity, f"at least {size}, the tokens of a block of this trace")
    prompts = prompts_of(trace.contents, size)

    def replayed(capacity: int | None) -> CacheReplay:
        chosen = None if eviction == CLAIRVOYANT else build_policy("eviction", {"name": eviction}, "--eviction")
        return replay_cache(prompts, size, None if capacity is None else capacity // size, chosen, spec)

    unbounded = replayed(None)
    rows = [_row(replayed(capacity), unbounded, capacity) for capacity in capacity_tokens or ()]
    rows.append(_row(unbounded, unbounded, None))
    if as_json:
        facts = {"trace": str(file), "block_tokens": size, "eviction": eviction, "requests": unbounded.requests}
        typer.echo(json.dumps({**facts, "prompt_tokens": unbounded.prompt_tokens, "caches": rows}, indent=2))
        return
    table = plain_table("capacity (tokens)", "hit tokens", "hit rate", "share of the most")
    for row in rows:
        size_shown = "unbounded" if row["capacity_tokens"] is None else f"{row['capacity_tokens']:,}"
        table.add_row(size_shown, f"{row['hit_tokens']:,}", _percent(row["hit_rate"]), _percent(row["share_of_most"]))
    print_table(table, console())
    prompt_tokens = f"{unbounded.prompt_tokens:,}"
    typer.echo(f"{unbounded.requests:,} prompts, {prompt_tokens} tokens, blocks of {size} tokens, {eviction}")


def _row(replay: CacheReplay, unbounded: CacheReplay, capacity_tokens: int | None) -> dict[str, Any]:
    return {
        "capacity_tokens": capacity_tokens,
        "hit_tokens": replay.hit_tokens,
        "hit_rate": replay.hit_rate,
        "share_of_most": replay.hit_tokens / unbounded.hit_tokens if unbounded.hit_tokens else None,
    }


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
