"""Print what KV memory costs: ``python -m benchmarks.kv_memory``; it is also part of ``python -m benchmarks``.

Three things ought to hold: an appended token costs next to nothing where many decode steps are taken at once; taking
and giving back costs by the blocks that change hands, however many there are; a lookup costs at most by the blocks of
the prefix, however much is cached. All costs stand beside the plainest Python that does the like, measured in turn with
them; of several measurements the least counts, which is the one that the machine disturbed least.
"""

from collections.abc import Callable, Iterator
from itertools import count
from time import process_time

from simcore.core.content import Content, Run
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.memory import KVBlockCounter, KVBlockManager, KVRadixManager

Memory = KVBlockCounter | KVBlockManager | KVRadixManager
MakeMemory = Callable[[int], Memory]

BLOCK_SIZE_TOKENS = 16
SEQUENCES = 256
STEPS_AT_ONCE = (1, 16, 256)
BLOCKS_CHANGED = (1, 16, 256, 4_096)
TOTAL_BLOCKS = (10_000, 100_000, 1_000_000)
PREFIX_BLOCKS = (1, 16, 256, 4_096)
CACHED_PROMPTS = (10, 100)
REPEATS = 7

KINDS: dict[str, MakeMemory] = {
    "counter": lambda blocks: KVBlockCounter(blocks, BLOCK_SIZE_TOKENS, prefix_caching=True),
    "manager, hash": lambda blocks: KVBlockManager(blocks, BLOCK_SIZE_TOKENS, prefix_caching=True),
    "manager, radix": lambda blocks: KVRadixManager(blocks, BLOCK_SIZE_TOKENS),
}
FINDING = ("manager, hash", "manager, radix")


def report() -> list[str]:
    """Measure, and return lines of Markdown."""
    steps = [f"{steps} at once" for steps in STEPS_AT_ONCE]
    blocks = [f"{blocks:,}" for blocks in BLOCKS_CHANGED]
    prefixes = [f"{blocks:,}" for blocks in PREFIX_BLOCKS]
    return [
        f"Million tokens per second that decode steps of {SEQUENCES} sequences append, admission and release included,",
        "by how many steps are taken at once; in brackets how many times as many as a loop over all sequences appends:",
        "",
        *_head("memory", steps),
        *(_row(name, [_appends(make, steps) for steps in STEPS_AT_ONCE]) for name, make in KINDS.items()),
        "",
        "Nanoseconds per block of admitting a request and taking its blocks back, by how many it needs. No other has",
        "said what it says, and nearly all free blocks cache something that must be given up first; in brackets how",
        "many times that of moving one element from a list to another and back:",
        "",
        *_head("memory, blocks in all", blocks),
        *(
            _row(f"{name}, {total:,}", [_admissions(KINDS[name], total, blocks) for blocks in BLOCKS_CHANGED])
            for name in KINDS
            for total in TOTAL_BLOCKS
        ),
        "",
        "Microseconds of looking up a prompt that is all cached, by its blocks; in brackets how many times that of",
        "finding as many keys in a dictionary:",
        "",
        *_head("memory, prompts cached", prefixes),
        *(
            _row(f"{name}, {prompts:,}", [_lookups(KINDS[name], prompts, blocks) for blocks in PREFIX_BLOCKS])
            for name in FINDING
            for prompts in CACHED_PROMPTS
        ),
    ]


def _head(first: str, columns: list[str]) -> list[str]:
    return [f"| {first} | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _least(own: Callable[[], None], base: Callable[[], None]) -> tuple[float, float]:
    """Processor seconds of one call of each."""
    own()
    base()
    pairs = [(_seconds(own), _seconds(base)) for _ in range(REPEATS)]
    return min(seconds for seconds, _ in pairs), min(seconds for _, seconds in pairs)


def _seconds(call: Callable[[], None]) -> float:
    started = process_time()
    call()
    return process_time() - started


def request(number: int, blocks: int, first: int) -> Request:
    """A request whose prompt is successive tokens from ``first``: so many full blocks, and one token more."""
    tokens = blocks * BLOCK_SIZE_TOKENS + 1
    return Request(number, 0, tokens, content=Content([Run(first, tokens)], -1 - number))


def serve(memory: Memory, served: Request) -> None:
    """Let a request find, take, compute and give back what its prompt needs."""
    cached_tokens, _ = memory.cached_prefix(served)
    memory.admit(served, cached_tokens, served.prompt_tokens - cached_tokens)
    served.computed_tokens = served.prompt_tokens
    memory.computed(served)
    memory.release(served)


def _appends(make: MakeMemory, steps_at_once: int) -> str:
    steps = 2_048
    blocks = SEQUENCES * (steps // BLOCK_SIZE_TOKENS + 3)
    walked = min(steps, 64)

    def own() -> None:
        decode(make(blocks), steps, steps_at_once)

    def base() -> None:
        walk(blocks, walked)

    seconds, of_base = _least(own, base)
    per_s, base_per_s = SEQUENCES * steps / seconds, SEQUENCES * walked / of_base
    return f"{per_s / 1e6:,.0f} ({per_s / base_per_s:,.1f})"


def decode(memory: Memory, steps: int, steps_at_once: int) -> None:
    """Let sequences decode from one token on, a few blocks apart in phase, and leave."""
    pool = DecodePool(BLOCK_SIZE_TOKENS)
    running = [Request(number, 0, 1 + number % BLOCK_SIZE_TOKENS) for number in range(SEQUENCES)]
    for member in running:
        memory.admit(member, 0, member.prompt_tokens)
        member.origin = pool.join(member.prompt_tokens)
    for _ in range(steps // steps_at_once):
        memory.allocate(pool.blocks_needed(steps_at_once))
        pool.advance(steps_at_once)
    for member in running:
        member.computed_tokens = pool.leave(member.origin)
        memory.release(member)


def walk(blocks: int, steps: int) -> None:
    """The same without a pool: every step looks at every sequence."""
    free = list(range(blocks))
    tokens = [1 + number % BLOCK_SIZE_TOKENS for number in range(SEQUENCES)]
    tables = [[free.pop()] for _ in range(SEQUENCES)]
    for _ in range(steps):
        for member, held in enumerate(tokens):
            if held % BLOCK_SIZE_TOKENS == 0:
                tables[member].append(free.pop())
            tokens[member] = held + 1
    for table in tables:
        free += table


def _admissions(make: MakeMemory, total_blocks: int, blocks: int) -> str:
    memory, numbers = make(total_blocks), count()
    requests = max(1, 4_096 // blocks)

    def fresh(size: int) -> Request:
        number = next(numbers)
        return request(number, size - 1, number << 32)

    def own() -> None:
        for served in prepared:
            serve(memory, served)

    for _ in range(total_blocks // 1_000):
        serve(memory, fresh(1_000))
    least, least_of_base = float("inf"), float("inf")
    for _ in range(REPEATS):
        prepared = [fresh(blocks) for _ in range(requests)]
        least = min(least, _seconds(own))
        least_of_base = min(least_of_base, _seconds(lambda: move(requests * blocks)))
    return f"{least / requests / blocks * 1e9:,.1f} ({least / least_of_base:,.2f})"


def move(elements: int) -> None:
    """Take elements from one list into another, one by one, and put them back."""
    free, held = list(range(elements)), []
    for _ in range(elements):
        held.append(free.pop())
    for _ in range(elements):
        free.append(held.pop())


def _lookups(make: MakeMemory, prompts: int, blocks: int) -> str:
    memory = make(prompts * (blocks + 1))
    for number in range(prompts):
        serve(memory, request(number, blocks, number << 32))
    sought = request(prompts, blocks, (prompts // 2) << 32)
    known = dict.fromkeys(range(prompts * blocks))
    times = max(1, 8_192 // blocks)

    def own() -> None:
        for _ in range(times):
            memory.cached_prefix(sought)

    def base() -> None:
        for _ in range(times):
            for _ in found(known, blocks):
                pass

    if memory.cached_prefix(sought)[0] != blocks * BLOCK_SIZE_TOKENS:
        raise AssertionError("the prompt is not cached")
    seconds, of_base = _least(own, base)
    return f"{seconds / times * 1e6:,.1f} ({seconds / of_base:,.2f})"


def found(known: dict[int, None], keys: int) -> Iterator[int]:
    """The first keys, as far as they are there."""
    for key in range(keys):
        if key not in known:
            return
        yield key


if __name__ == "__main__":
    print("\n".join(report()))
