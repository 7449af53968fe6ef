"""Commands and options that there are not, told as any other wrong input."""

import re
from collections.abc import Iterable
from typing import Any

from simcore.core.errors import InputError, UnknownNameError, printable, shortened

_LONGEST = 1000
_NO_SUCH_COMMAND = re.compile(r"No such command (['\"])(.*?)\1(\.|,| |$).*", re.DOTALL)
_BAD_VALUE = re.compile(r"Invalid value for (['\"])(?P<field>.+?)\1: (?P<problem>.*)", re.DOTALL)
_NO_SUCH_CHOICE = re.compile(r"(?:Value error, )?(['\"])(?P<value>.*)\1 is not one of (?P<choices>.*)", re.DOTALL)
_NOT_VALID = re.compile(
    r"(['\"])(?P<value>.*)\1 is not (?P<expected>a valid [^.,]*).*|Input should be (?P<stated>[^,]*).*", re.DOTALL
)


def usage_problem(error: Exception) -> str | None:
    """What a user got wrong in calling a command, given what its parser raised; None for any other error.

    The classes that typer raises are not public in all of its versions, but their methods are the same.
    """
    words = getattr(error, "format_message", None)
    if words is None:
        return None
    context = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        return str(words())
    said = str(words())
    problem = _unknown_name(error, said, context) or _bad_value(error, said)
    sentence = str(problem) if problem else shortened(printable(" ".join(said.split())), _LONGEST)
    hint = f"\nTry '{context.command_path} --help'." if context is not None else ""
    return f"servetwin: {sentence}{hint}"


def _unknown_name(error: Exception, said: str, context: Any) -> UnknownNameError | None:
    if context is None:
        return None
    command = _NO_SUCH_COMMAND.fullmatch(said)
    if command is not None:
        return UnknownNameError("the command", command[2], context.command.list_commands(context))
    option = getattr(error, "option_name", None)
    if option is not None and said.startswith("No such option"):
        return UnknownNameError("the option", option, _options(context))
    return None


def _bad_value(error: Exception, said: str) -> InputError | None:
    """Typer reads values by click in some versions and by pydantic in others, and each has words of its own."""
    bad = _BAD_VALUE.fullmatch(said)
    if bad is None:
        return None
    choice = _NO_SUCH_CHOICE.fullmatch(bad["problem"])
    if choice is not None:
        return UnknownNameError(bad["field"], choice["value"], re.findall("'([^']*)'", choice["choices"]))
    wrong = _NOT_VALID.fullmatch(bad["problem"])
    if wrong is None:
        return None
    value = wrong["value"]
    if value is None:
        details: list[dict[str, Any]] = getattr(error.__cause__ or error.__context__, "errors", list)()
        if not details:
            return None
        value = details[0]["input"]
    return InputError(bad["field"], value, wrong["expected"] or wrong["stated"])


def _options(context: Any) -> Iterable[str]:
    names = (name for parameter in context.command.get_params(context) for name in parameter.opts)
    return [name for name in names if name.startswith("--")]
