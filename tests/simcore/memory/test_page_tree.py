"""The radix tree over pages: what it finds, what it gives up first, and that its counts are right."""

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.content import BlockKeys, Run
from simcore.memory.page_memory import PageHolding, PageMemory
from simcore.memory.page_tree import PageTree

PAGE = 4


def keys_of(*runs):
    return BlockKeys([Run(*run) for run in runs], PAGE)


def pages_of(keys, pages):
    return [keys.at(page) for page in range(pages)]


def recount(tree):
    tokens = evictable = 0
    pending = [tree.root]
    while pending:
        node = pending.pop()
        pending += node.children.values()
        tokens += len(node.keys) * PAGE
        evictable += 0 if node.locks else len(node.keys) * PAGE
        assert all(child.parent is node for child in node.children.values())
        assert all(key == child.keys[0] for key, child in node.children.items())
        if node is not tree.root:
            assert node.locks >= max((child.locks for child in node.children.values()), default=0)
    return tokens, evictable


@settings(deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["insert", "match", "lock", "unlock", "evict"]),
            st.integers(0, 2),
            st.integers(1, 9),
            st.integers(0, 2),
        ),
        max_size=40,
    )
)
def test_prefixes_are_found_and_counts_are_right(actions):
    tree, held, known = PageTree(PAGE), [], set()
    for action, first, pages, tail in actions:
        keys = pages_of(keys_of((100 * first, PAGE * 3), (1000 * tail, 100)), pages)
        if action == "insert":
            node, before = tree.insert(keys)
            assert before == max((end for end in range(pages + 1) if tuple(keys[:end]) in known), default=0)
            known |= {tuple(keys[:end]) for end in range(1, pages + 1)}
        elif action in ("match", "lock"):
            node, found = tree.match(keys.__getitem__, pages)
            assert found == max((end for end in range(1, pages + 1) if tuple(keys[:end]) in known), default=0)
            if action == "lock":
                tree.lock(node)
                held.append((node, tuple(keys[:found])))
        elif action == "unlock" and held:
            tree.unlock(held.pop(tail % len(held))[0])
        elif action == "evict":
            free = tree.evictable
            assert tree.evict(pages) >= min(pages, free)
            known = {prefix for prefix in known if tree.match(prefix.__getitem__, len(prefix))[1] == len(prefix)}
            assert all(prefix in known for _, prefix in held if prefix)
        assert recount(tree) == (tree.tokens, tree.evictable)


def test_the_leaf_used_longest_ago_goes_first_and_a_look_counts_as_use():
    tree = PageTree(PAGE)
    first, second = (pages_of(keys_of((start, 100)), 3) for start in (0, 500))
    tree.insert(first)
    tree.insert(second)
    tree.match(first.__getitem__, 3)
    assert tree.evict(1) == 3 * PAGE
    assert tree.match(first.__getitem__, 3)[1] == 3
    assert tree.match(second.__getitem__, 3)[1] == 0


def test_what_was_generated_can_be_given_up_without_the_prompt():
    memory = PageMemory(66, PAGE)
    assert memory.total_tokens == 64
    holding = PageHolding(keys_of((0, 100)), prompt_tokens=8)
    assert memory.look_up(holding, 7) == 0
    memory.hold(holding, 0)
    memory.grow(holding, 18)
    memory.publish(holding, 18)
    assert (holding.shared_tokens, memory.free_tokens) == (16, 44)
    memory.release(holding)
    assert (memory.free_tokens, memory.tree.evictable) == (48, 16)
    assert memory.make_free(49)
    assert memory.look_up(PageHolding(keys_of((0, 100)), 8), 17) == 8
