"""Text of an output that grows token by token, and where it stops."""

from collections.abc import Sequence

from live.text.tokenizer import TextTokenizer

_UNFINISHED = "\ufffd"
"""How the bytes of an incomplete character at the end are decoded; so is one of this very character."""
_LONGEST_WINDOW, _KEPT_TOKENS = 24, 8
"""Tokens that are decoded together: what a token reads may depend on the few before it."""


class Detokeniser:
    """The text of one output: each token adds what has become certain, whole characters alone.

    With ``stop_strings`` the text ends before the one that is complete first, and nothing is given out that may yet
    turn out to be the beginning of one. ``stopped`` tells that one was found.
    """

    def __init__(self, tokenizer: TextTokenizer, stop_strings: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._stops = tuple(stop for stop in stop_strings if stop)
        self._window: list[int] = []
        self._given = 0  # characters of the window
        self._held = ""
        self.stopped = False

    def add(self, token: int) -> str:
        """The text that a token makes certain; empty after a stop string."""
        if self.stopped:
            return ""
        self._window.append(token)
        return self._released(self._new_text(last=False))

    def finish(self) -> str:
        """What was held back, at the end of the output."""
        if self.stopped:
            return ""
        text = self._released(self._new_text(last=True))
        held, self._held = self._held, ""
        return text if self.stopped else text + held

    def _new_text(self, last: bool) -> str:
        """What the window says beyond what was given out, without an incomplete character at its end."""
        text = self._tokenizer.decode(self._window)
        unfinished = text.endswith(_UNFINISHED) and not last
        end = max(self._given, len(text) - unfinished)
        new = text[self._given : end]
        self._given = end
        if len(self._window) > _LONGEST_WINDOW and not unfinished:
            self._window = self._window[-_KEPT_TOKENS:]
            self._given = len(self._tokenizer.decode(self._window))
        return new

    def _released(self, text: str) -> str:
        if not self._stops:
            return text
        text = self._held + text
        found = [(text.find(stop) + len(stop), text.find(stop)) for stop in self._stops if stop in text]
        if found:
            self.stopped = True
            self._held = ""
            return text[: min(found)[1]]
        kept = max(_overlap(text, stop) for stop in self._stops)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of ``text`` may begin ``stop``."""
    longest = min(len(text), len(stop) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)
