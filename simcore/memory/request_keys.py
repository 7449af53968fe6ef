"""The block keys of the requests of one replica."""

from collections.abc import Callable
from hashlib import blake2b

from simcore.core.content import BlockKeys, Run
from simcore.core.request import Request

ENDLESS = 2**62
"""Tokens of a run whose length is not known yet."""

Namespace = Callable[[Request], bytes]
"""What requests must have in common to share blocks."""


def one_for_all(request: Request) -> bytes:
    """The namespace of everybody."""
    return b""


class RequestKeys:
    """Keys of prompt and output of each request, made when they are asked for first.

    A request without content says what no other says.
    """

    __slots__ = ("_block_size_tokens", "_keys", "_namespace")

    def __init__(self, block_size_tokens: int, namespace: Namespace) -> None:
        self._block_size_tokens = block_size_tokens
        self._namespace = namespace
        self._keys: dict[int, BlockKeys] = {}

    def of(self, request: Request) -> BlockKeys:
        """The keys of a request, kept until they are given up."""
        keys = self._keys.get(request.number)
        if keys is None:
            keys = self._keys[request.number] = self.made(request)
        return keys

    def made(self, request: Request) -> BlockKeys:
        """The keys of a request that may never come here: nothing is kept."""
        content = request.content
        if content is None:
            own = blake2b(b"request %d" % request.number, digest_size=12).digest()
            return BlockKeys([Run(0, ENDLESS)], self._block_size_tokens, own)
        runs = [*content.prompt, *content.output, Run(content.output_first, ENDLESS)]
        return BlockKeys(runs, self._block_size_tokens, self._namespace(request))

    def forget(self, request: Request) -> None:
        """Give up the keys of a request that will not be asked for again."""
        self._keys.pop(request.number, None)
