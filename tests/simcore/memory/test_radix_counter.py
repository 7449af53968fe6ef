"""Counts of blocks over a radix tree: what is found, what is given up first, and what a request goes on with."""

from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.content import Content, Run
from simcore.core.request import Request
from simcore.memory.radix_counter import KVRadixCounter

PAGE = 4


def request_of(number, prompt, tail=0):
    """Requests of one ``tail`` say the same; all others say the same in their first 12 tokens."""
    runs = [Run(0, min(prompt, 12)), Run(10**6 * (tail + 1), max(prompt - 12, 0))]
    return Request(number, 0, prompt, content=Content(runs, 10**9 * (number + 1)))


def serve(memory, request, output=0):
    """Let a request run to its end, if there is room; returns how many tokens it found."""
    found = memory.look_up(request, request.prompt_tokens - 1)
    tokens = request.prompt_tokens + output
    if memory.blocks_for(tokens) - found // PAGE > memory.free_beside_found(request):
        memory.forget(request)
        return None
    memory.hold(request, found)
    request.computed_tokens = found
    memory.grow(request, tokens - found)
    request.computed_tokens = tokens
    memory.release(request)
    return found


@settings(deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["start", "publish", "leave", "give way", "decode", "make blank"]),
            st.integers(1, 40),
            st.integers(0, 2),
        ),
        max_size=40,
    ),
    st.booleans(),
)
def test_books_add_up_whatever_happens(actions, shares):
    memory, running, number = KVRadixCounter(24, PAGE, shares), [], 0
    for action, tokens, tail in actions:
        if action == "start":
            request = request_of(number, tokens, tail)
            number += 1
            found = memory.look_up(request, tokens - 1)
            if memory.blocks_for(tokens) - found // PAGE > memory.free_beside_found(request):
                memory.forget(request)
                continue
            memory.hold(request, found)
            request.computed_tokens = found
            memory.grow(request, tokens - found)
            request.computed_tokens = tokens
            running.append(request)
        elif action == "make blank":
            assert memory.make_blank(tokens) == (memory.blank_blocks >= tokens)
        elif running:
            request = running[tokens % len(running)]
            if action == "publish":
                memory.publish(request, request.computed_tokens)
            elif action == "decode":
                if memory.blocks_to_grow(request.computed_tokens, 1) <= memory.free_blocks:
                    memory.grow(request, 1)
                    request.computed_tokens += 1
            else:
                memory.release(request, comes_back=action == "give way")
                running.remove(request)
        memory.check([(request, request.computed_tokens) for request in running])
    for request in running:
        memory.release(request)
    memory.check([])
    assert memory.free_blocks == memory.total_blocks


def test_what_was_used_longest_ago_goes_first_and_a_look_counts_as_use():
    memory = KVRadixCounter(6, PAGE)
    first, second = (Request(number, 0, 12, content=Content([Run(100 * number, 12)], 10**9)) for number in range(2))
    serve(memory, first)
    serve(memory, second)
    memory.refresh(first, 12)
    assert memory.make_blank(1)
    assert [memory.look_up(request, 12) for request in (first, second)] == [12, 0]


def test_what_was_generated_can_be_given_up_without_the_prompt():
    memory = KVRadixCounter(16, PAGE)
    request = request_of(0, 8)
    serve(memory, request, output=10)
    assert (memory.blank_blocks, memory.free_blocks) == (12, 16)
    assert memory.make_blank(13)
    assert memory.look_up(request_of(1, 8), 17) == 8


def test_who_gives_way_leaves_what_was_entered_and_takes_no_more():
    memory = KVRadixCounter(16, PAGE)
    request = request_of(0, 10)
    assert memory.look_up(request, 9) == 0
    memory.hold(request, 0)
    memory.grow(request, 10)
    request.computed_tokens = 10
    memory.publish(request, 10)
    memory.grow(request, 6)
    request.computed_tokens = 16
    memory.release(request, comes_back=True)
    assert memory.look_up(request, 15) == 8


def test_without_sharing_nothing_is_found():
    memory = KVRadixCounter(16, PAGE, shares=False)
    assert [serve(memory, request_of(number, 20)) for number in range(2)] == [0, 0]
    assert memory.blank_blocks == memory.free_blocks == 16
