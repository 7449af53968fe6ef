"""What one step of prompts may hold: tokens of input, tokens of a chunk, and memory for what comes of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from policies.commitment import Commitment
from simcore.memory.radix_counter import KVRadixCounter
from simcore.scheduling.turns.seat import Seat

CLIPPED_OUTPUT_TOKENS = 4096
"""No request has more than so many tokens of output set aside (SGLang's ``CLIP_MAX_NEW_TOKENS``)."""
_SPARE_TOKENS = 1


class Verdict(Enum):
    """Whether the next request may be considered."""

    GO_ON = auto()
    NO_MEMORY = auto()
    SPENT = auto()


@dataclass(slots=True)
class PrefillBudget:
    """Fills a step of prompts. ``chunk_tokens`` is None where prompts are never cut.

    ``offset_tokens`` is memory that running requests and those let in may still take, ``taken_tokens`` the part of it
    that this step takes at once.
    """

    memory: KVRadixCounter
    commitment: Commitment
    input_tokens: int
    chunk_tokens: int | None
    running: Iterable[Seat]
    mixed_decodes: int = 0
    offset_tokens: float = field(init=False)
    taken_tokens: int = field(init=False)
    batch: list[Seat] = field(default_factory=list)
    cut: Seat | None = None
    _ends: list[tuple[float, int]] | None = None

    def __post_init__(self) -> None:
        self.input_tokens -= self.mixed_decodes
        if self.chunk_tokens is not None:
            self.chunk_tokens -= self.mixed_decodes
        self.taken_tokens = self.mixed_decodes
        self.offset_tokens = self.mixed_decodes + sum(map(self.set_aside, self.running))

    def set_aside(self, seat: Seat) -> float:
        """Tokens kept for what a running request may still generate."""
        return min(seat.remaining_tokens, CLIPPED_OUTPUT_TOKENS) * self.commitment.share(seat)

    @property
    def page_tokens(self) -> int:
        """Tokens of a block."""
        return self.memory.block_size_tokens

    @property
    def _free_tokens(self) -> int:
        return self.memory.free_blocks * self.page_tokens

    def _whole(self, tokens: int) -> int:
        """Tokens of the blocks that hold so many."""
        return self.memory.blocks_for(tokens) * self.page_tokens

    @property
    def left_tokens(self) -> float:
        """Tokens that a request let in now could have in the end."""
        return self._free_tokens - self.offset_tokens

    @property
    def left_at_once_tokens(self) -> int:
        """Tokens that it could have in this step."""
        return self._free_tokens - self.taken_tokens

    @property
    def verdict(self) -> Verdict:
        """Whether anything is left; memory is asked for first."""
        if self.left_tokens <= 0 or self.left_at_once_tokens <= 0:
            return Verdict.NO_MEMORY
        if self.input_tokens <= 0 or (self.chunk_tokens is not None and self.chunk_tokens <= 0):
            return Verdict.SPENT
        return Verdict.GO_ON

    def go_on_with(self, seat: Seat) -> bool:
        """Give the request whose prompt is cut its next chunk; returns whether it is still unfinished then."""
        if self.chunk_tokens is None:
            raise AssertionError("a prompt is cut where chunks have no size")
        limit = min(self.chunk_tokens, int(self.left_tokens))
        if limit <= 0:
            limit = self.chunk_tokens
        rest = seat.known_tokens - seat.prefix_tokens
        unfinished = rest > limit
        self._take(seat, min(rest, limit), 0 if unfinished else self._output(seat))
        return unfinished

    def add(self, seat: Seat) -> Verdict:
        """Let a waiting request in whose prefix has just been looked up, if there is room, whole or cut."""
        if seat.ignores_eos and not self.memory.shares:
            return self._add_of_known_length(seat)
        rest = seat.known_tokens - seat.prefix_tokens
        needed = rest + min(max(seat.remaining_tokens, 0), CLIPPED_OUTPUT_TOKENS) + self.page_tokens
        if needed >= self.memory.free_beside_found(seat.request) * self.page_tokens - self.offset_tokens:
            return Verdict.NO_MEMORY
        whole, page = self._whole(rest), self.page_tokens
        if self.chunk_tokens is None:
            if self.batch and whole >= self.input_tokens:
                return Verdict.SPENT
        elif whole > self.chunk_tokens:
            end = (seat.prefix_tokens + self.chunk_tokens // page * page) // page * page
            if end <= seat.prefix_tokens:
                return Verdict.SPENT
            self._let_in(seat, end - seat.prefix_tokens, cut=True)
            return self.verdict
        self._let_in(seat, rest, cut=False)
        return self.verdict

    def _add_of_known_length(self, seat: Seat) -> Verdict:
        """Let in a request whose end is known, if all who run can be laid out until each has ended."""
        rest = seat.known_tokens - seat.prefix_tokens
        pages = self._whole(rest) + self.page_tokens
        if pages > min(self.left_at_once_tokens, self.left_tokens):
            return Verdict.NO_MEMORY
        ends = self._note_ends(seat)
        free: float = self.left_at_once_tokens - pages
        for place, (tokens_left, held_tokens) in enumerate(ends):
            alive = len(ends) - place
            if free - tokens_left * alive <= _SPARE_TOKENS * alive:
                return Verdict.NO_MEMORY
            free += held_tokens
        if self.chunk_tokens is None or rest <= self.chunk_tokens:
            self._let_in(seat, rest, cut=False)
        elif self.chunk_tokens <= 0:
            return Verdict.SPENT
        else:
            self._let_in(seat, self.chunk_tokens, cut=True)
        return self.verdict

    def _note_ends(self, seat: Seat) -> list[tuple[float, int]]:
        """Tokens until each who is in ends, with what it holds then; a later one is put before the first not smaller.

        One that is larger than all is put before the last, as SGLang does.
        """
        if self._ends is None:
            states = [self._end(other) for other in (seat, *self.running, *self.batch)]
            self._ends = sorted((end for end in states if end[0] > 0), key=lambda end: end[0])
        elif (new := self._end(seat))[0] > 0:
            places = range(len(self._ends))
            place = next((place for place in places if new[0] <= self._ends[place][0]), max(len(self._ends) - 1, 0))
            self._ends.insert(place, new)
        return self._ends

    def _end(self, seat: Seat) -> tuple[float, int]:
        tokens_left = seat.max_output_tokens * self.commitment.share(seat) - seat.generated_tokens
        return tokens_left, seat.text_tokens

    def _output(self, seat: Seat) -> int:
        return min(seat.max_output_tokens, CLIPPED_OUTPUT_TOKENS)

    def _let_in(self, seat: Seat, tokens: int, cut: bool) -> None:
        self.memory.hold(seat.request, seat.prefix_tokens)
        if cut:
            self.cut = seat
        self._take(seat, tokens, 0 if cut else self._output(seat))

    def _take(self, seat: Seat, tokens: int, output_tokens: int) -> None:
        seat.end_tokens = seat.prefix_tokens + tokens
        self.batch.append(seat)
        whole = self._whole(tokens)
        self.offset_tokens += whole + self.page_tokens + output_tokens
        self.taken_tokens += whole + self.page_tokens
        self.input_tokens -= whole
        if self.chunk_tokens is not None:
            self.chunk_tokens -= whole
