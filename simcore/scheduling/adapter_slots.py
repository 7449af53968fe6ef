"""Adapters that a replica has in GPU memory, and those of the requests that run."""

from collections.abc import Callable, Iterable, Mapping

from simcore.core.request import Request


class AdapterSlots:
    """Slots of adapters: those of running requests, and as far as there is room those used last.

    A request whose adapter is not in use is only admitted while fewer adapters than slots are (vLLM, ``max_loras``).
    """

    __slots__ = ("_adapter_of", "_resident", "_slots", "loads")

    def __init__(self, adapter_of: Callable[[Request], int], slots: int) -> None:
        self._adapter_of = adapter_of
        self._slots = slots
        self._resident: dict[int, None] = {}
        self.loads = 0
        """Times that an adapter was loaded."""

    def admits(self, request: Request, running: Mapping[int, Request]) -> bool:
        """Whether a request can run beside others, as far as adapters are concerned."""
        used = self._used(running.values())
        return len(used) < self._slots or self._adapter_of(request) in used

    def use(self, running: Mapping[int, Request]) -> tuple[int, int]:
        """Have the adapters of all that run in slots; returns how many they are, and how many had to be loaded."""
        used, resident = self._used(running.values()), self._resident
        loaded = 0
        for adapter in used:
            if adapter in resident:
                del resident[adapter]
            else:
                loaded += 1
            resident[adapter] = None
        while len(resident) > self._slots:
            del resident[next(iter(resident))]
        self.loads += loaded
        return len(used), loaded

    def _used(self, requests: Iterable[Request]) -> dict[int, None]:
        """The adapters of some requests, in their order."""
        return dict.fromkeys(map(self._adapter_of, requests))
