"""Which queue an ordering needs."""

from policies.ordering import CacheAwareOrdering, GroupOrdering, Ordering
from simcore.core.decode_pool import DecodePool
from simcore.memory import KVMemory
from simcore.scheduling.cache_aware_queue import CacheAwareQueue
from simcore.scheduling.grouped_queue import GroupedQueue
from simcore.scheduling.ranked_queue import RankedQueue
from simcore.scheduling.waiting_queue import KeyedQueue, WaitingQueue


def waiting_queue(ordering: Ordering, memory: KVMemory, pool: DecodePool) -> WaitingQueue:
    """An empty queue, sorted as the ordering says."""
    if isinstance(ordering, GroupOrdering):
        return GroupedQueue(ordering, pool)
    if isinstance(ordering, CacheAwareOrdering):
        return CacheAwareQueue(ordering, memory)
    return RankedQueue(ordering) if ordering.changes_with_time else KeyedQueue(ordering)
