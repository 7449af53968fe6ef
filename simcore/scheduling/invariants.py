"""Recounting the books of a scheduler the slow way, for tests."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simcore.scheduling.scheduler_state import SchedulerState


def check_invariants(scheduler: "SchedulerState") -> None:
    """Raise AssertionError where what a scheduler notes differs from what its requests say."""
    pool, waiting = scheduler.pool, scheduler.waiting
    if not waiting.size and waiting.tokens:
        raise AssertionError(f"nobody waits, noted {waiting.tokens} tokens")
    decoding = [request for request in scheduler.running.values() if request.pool is not None]
    contexts = [pool.context_of(request.origin) for request in decoding]
    ending = scheduler.ending
    idle = [request for request in scheduler.running.values() if request.pool is None]
    prefilling = [request for request in idle if request.number not in ending]
    held = [*zip(decoding, contexts, strict=True), *((request, request.computed_tokens) for request in idle)]
    if scheduler.loading is not None:
        held += scheduler.loading.held_tokens
        scheduler.loading.tiers.check()
    if scheduler.swapping is not None:
        scheduler.swapping.check()
    if not scheduler.lanes:  # of several batches the others hold blocks for steps that have not ended
        scheduler.memory.check(held)
    found = (len(decoding), sum(contexts), list(scheduler.prefilling.values()))
    noted = (pool.size, pool.context_tokens, prefilling)
    if found != noted:
        raise AssertionError(f"recounted {found}, noted {noted}")
    for window in pool.windows:
        if window.tokens != sum(min(context, window.window_tokens) for context in contexts):
            raise AssertionError(f"window of {window.window_tokens} tokens: noted {window.tokens}")
