"""The API server in front of the scheduler: what a request takes from its arrival to the queue."""

from simcore.core.clock import NS_PER_S, to_ns
from simcore.cost.assumptions import HostOverhead


class ApiServer:
    """Tokenises prompts one at a time, in order of arrival, and hands each request on a fixed time later.

    Prompts that will be turned away take their time here like any other, as their length is only known by their tokens:
    SGLang (managers/tokenizer_manager.py) and TensorRT-LLM (llmapi/llm.py) tokenise first and then check it.

    A step that goes on when a request comes to the queue is not waited for here: the scheduler sees to that. What a
    token takes on its way back is part of the fixed time, since latencies show no more than the sum.
    """

    __slots__ = ("_free_ns", "_per_token_ns", "_request_ns")

    def __init__(self, host: HostOverhead) -> None:
        self._request_ns = to_ns(host.request_s)
        self._per_token_ns = host.per_prompt_token_s * NS_PER_S
        self._free_ns = 0

    def passes_ns(self, arrival_ns: int, prompt_tokens: int) -> int:
        """When a request that arrives then comes to the queue; to be asked in order of arrival, once for each."""
        self._free_ns = max(arrival_ns, self._free_ns) + round(prompt_tokens * self._per_token_ns)
        return self._free_ns + self._request_ns
