"""Whose time a step was: it is divided among the tokens that it computed."""

from simcore.core.clock import to_s


class StepTime:
    """What a request that decodes all along has got of the time of all steps, in seconds.

    As every decoding request gets as much, one sum serves them all: whoever joins or leaves takes its present value.
    Nanoseconds of like steps are added up before they are divided, so the sum is the same to the bit however many steps
    a jump takes.
    """

    __slots__ = ("_decoding", "_elapsed_ns", "_settled_s")

    def __init__(self) -> None:
        self._settled_s = 0.0
        self._elapsed_ns = 0
        self._decoding = 1

    @property
    def per_member_s(self) -> float:
        """The sum at present."""
        return self._settled_s + to_s(self._elapsed_ns) / self._decoding

    def decoded(self, elapsed_ns: int, decoding: int) -> None:
        """Count steps in which so many requests decoded and nothing else was computed."""
        if decoding != self._decoding:
            self._settled_s, self._elapsed_ns, self._decoding = self.per_member_s, 0, decoding
        self._elapsed_ns += elapsed_ns

    def add(self, per_token_s: float) -> None:
        """Count a step by what each token got of it."""
        self._settled_s, self._elapsed_ns = self.per_member_s + per_token_s, 0
