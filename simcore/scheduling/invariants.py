"""Recounting the books of a scheduler the slow way, for tests."""

from collections.abc import Iterable

from simcore.core.request import Request
from simcore.scheduling.state import SchedulerState


def check_invariants(state: SchedulerState, elsewhere: Iterable[tuple[Request, int]] = ()) -> None:
    """Raise AssertionError where what a scheduler notes differs from what its requests say.

    Some hold blocks for so many tokens and are ``elsewhere``: they do not run.
    """
    pool, waiting = state.pool, state.waiting
    if not waiting.size and waiting.tokens:
        raise AssertionError(f"nobody waits, noted {waiting.tokens} tokens")
    decoding = [request for request in state.running.values() if request.pool is not None]
    contexts = [pool.context_of(request.origin) for request in decoding]
    idle = [request for request in state.running.values() if request.pool is None]
    prefilling = [request for request in idle if request.number not in state.ending]
    held = [*zip(decoding, contexts, strict=True), *((request, request.computed_tokens) for request in idle)]
    held += elsewhere
    if state.loading is not None:
        held += state.loading.held_tokens
        state.loading.tiers.check()
    if state.swapping is not None:
        state.swapping.check()
    if not state.in_flight:  # of several batches the others hold blocks for steps that have not ended
        state.memory.check(held)
    found = (len(decoding), sum(contexts), list(state.prefilling.values()))
    noted = (pool.size, pool.context_tokens, prefilling)
    if found != noted:
        raise AssertionError(f"recounted {found}, noted {noted}")
    for window in pool.windows:
        if window.tokens != sum(min(context, window.window_tokens) for context in contexts):
            raise AssertionError(f"window of {window.window_tokens} tokens: noted {window.tokens}")
