"""Where the command line starts and ends: exit codes, and one sentence on what a user got wrong.

Everything else is imported within ``main``, so that Ctrl-C ends quietly from the first moment.
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_YOUNG_OBJECTS = 50_000
"""New objects after which Python looks for garbage in cycles. What a command imports and reads is none: to look through
it after every 700 objects takes a tenth of the time in which it starts."""

_AGAIN_S = 0.02
INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main() -> None:
    """Run the command line; what a user got wrong is told on standard error, with exit code 2."""
    gc.set_threshold(_YOUNG_OBJECTS)
    with _ending_at_once_on_interrupt():
        from servetwin.app import app
        from servetwin.usage import usage_problem
        from simcore.core.errors import ServetwinError
    _settle_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = app(prog_name="servetwin", standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except ServetwinError as error:
        print(f"servetwin: {error}", file=sys.stderr)
    except MemoryError:
        print("servetwin: This needs more memory than there is; fewer requests need less.", file=sys.stderr)
    except OSError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in the buffer would fail again at the end
        print(f"servetwin: standard output cannot be written ({error.strerror}).", file=sys.stderr)
    except Exception as error:
        problem = usage_problem(error)
        if problem is None:
            raise
        print(problem, file=sys.stderr)
    sys.exit(2)


def _settle_streams() -> None:
    """Let no closed stream, and no letter that a terminal cannot show, end a run."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        if hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors="backslashreplace")


@contextmanager
def _ending_at_once_on_interrupt() -> Iterator[None]:
    """Modules in the middle of being imported may turn a ``KeyboardInterrupt`` into another error, or swallow it."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise ``KeyboardInterrupt``, once no module is in the middle of being imported."""
    if _importing(frame):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        return
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _terminate(number: int, frame: FrameType | None) -> None:
    """End as by an error, so that hidden folders and processes are cleaned up."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
