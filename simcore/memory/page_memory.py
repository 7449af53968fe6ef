"""KV memory in pages, counted in tokens: what requests have themselves, and what they share in a ``PageTree``."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from simcore.core.content import BlockKeys
from simcore.memory.page_tree import Node, PageTree


@dataclass(slots=True, eq=False)
class PageHolding:
    """What a request has: ``committed_tokens``, of which the tree has the first ``shared_tokens``, down to ``node``."""

    keys: BlockKeys
    prompt_tokens: int
    node: Node | None = None
    shared_tokens: int = 0
    committed_tokens: int = 0


@dataclass(slots=True)
class PageMemory:
    """``total_tokens`` in whole pages of ``page_tokens``; without ``shares`` nothing is kept for others.

    ``free_tokens`` are those that nobody has and that cache nothing; ``evicted_tokens`` counts what the tree gave up.
    """

    total_tokens: int
    page_tokens: int
    shares: bool = True
    free_tokens: int = field(init=False)
    evicted_tokens: int = field(default=0, init=False)
    tree: PageTree = field(init=False)

    def __post_init__(self) -> None:
        self.tree = PageTree(self.page_tokens)
        self.total_tokens = self.free_tokens = self.total_tokens // self.page_tokens * self.page_tokens

    @property
    def obtainable_tokens(self) -> int:
        """Tokens that are free or can be made so."""
        return self.free_tokens + self.tree.evictable

    def whole_pages(self, tokens: int) -> int:
        """Tokens of the pages that hold so many."""
        return -(-tokens // self.page_tokens) * self.page_tokens

    def look_up(self, holding: PageHolding, tokens: int) -> int:
        """How many of the first ``tokens`` of a request are in the tree, in whole pages; counts as use of them."""
        if not self.shares:
            holding.node = self.tree.root
            return 0
        holding.node, pages = self.tree.match(holding.keys.at, tokens // self.page_tokens)
        return pages * self.page_tokens

    @contextmanager
    def pinned(self, holding: PageHolding) -> Iterator[None]:
        """Keep the prefix that a request has just found for a moment."""
        node = _node(holding)
        self.tree.lock(node)
        yield
        self.tree.unlock(node)

    def hold(self, holding: PageHolding, prefix_tokens: int) -> None:
        """Keep the prefix that a request has just found for as long as it runs."""
        self.tree.lock(_node(holding))
        holding.shared_tokens = holding.committed_tokens = prefix_tokens

    def make_free(self, tokens: int) -> bool:
        """Give up leaves until so many tokens are free; returns whether they are."""
        missing = tokens - self.free_tokens
        if missing > 0 and self.shares:
            evicted = self.tree.evict(missing)
            self.evicted_tokens += evicted
            self.free_tokens += evicted
        return self.free_tokens >= tokens

    def grow(self, holding: PageHolding, tokens: int) -> None:
        """Give a request pages for so many more tokens; they must be free."""
        end = holding.committed_tokens + tokens
        self.free_tokens -= self.whole_pages(end) - self.whole_pages(holding.committed_tokens)
        holding.committed_tokens = end
        if self.free_tokens < 0:
            raise AssertionError(f"{-self.free_tokens} tokens more were taken than were free")

    def publish(self, holding: PageHolding, tokens: int) -> None:
        """Enter the whole pages of a request's first ``tokens`` into the tree, and go on with the tree's.

        The tree is parted where the prompt ends, so that what was generated can be given up alone.
        """
        if not self.shares or tokens <= 0:
            return
        tree, pages = self.tree, tokens // self.page_tokens
        keys = [holding.keys.at(page) for page in range(pages)]
        node, known = tree.insert(keys)
        self.free_tokens += max(known * self.page_tokens - holding.shared_tokens, 0)
        prompt_pages = holding.prompt_tokens // self.page_tokens
        if 0 < prompt_pages < pages:
            tree.insert(keys[:prompt_pages])
        tree.unlock(_node(holding))
        tree.lock(node)
        holding.node, holding.shared_tokens = node, pages * self.page_tokens

    def release(self, holding: PageHolding) -> None:
        """Take back what a request has itself, and let go of what it shares."""
        self.free_tokens += self.whole_pages(holding.committed_tokens) - holding.shared_tokens
        self.tree.unlock(_node(holding))
        holding.node, holding.shared_tokens, holding.committed_tokens = None, 0, 0

    def tokens_to_decode(self, holdings: Sequence[PageHolding]) -> int:
        """Tokens that one more of each takes, in whole pages."""
        return self.page_tokens * sum(holding.committed_tokens % self.page_tokens == 0 for holding in holdings)


def _node(holding: PageHolding) -> Node:
    if holding.node is None:
        raise AssertionError("nothing was looked up for a request")
    return holding.node
