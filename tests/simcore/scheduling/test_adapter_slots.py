"""Which adapters are in slots, by hand."""

from simcore.core.request import Request
from simcore.scheduling.adapter_slots import AdapterSlots


def running(*adapters):
    return {adapter: Request(adapter, 0, 1) for adapter in adapters}


def test_a_slot_is_free_for_an_adapter_in_use_or_while_some_are_left():
    slots = AdapterSlots(lambda request: request.number, 2)
    assert slots.admits(Request(3, 0, 1), running(1))
    assert not slots.admits(Request(3, 0, 1), running(1, 2))
    assert slots.admits(Request(2, 0, 1), running(1, 2))


def test_the_adapter_used_longest_ago_gives_way():
    slots = AdapterSlots(lambda request: request.number, 2)
    used = [slots.use(running(*adapters)) for adapters in ((1,), (1, 2), (2,), (2, 3), (3, 2), (1,))]
    assert used == [(1, 1), (2, 1), (1, 0), (2, 1), (2, 0), (1, 1)]
    assert slots.loads == 4
