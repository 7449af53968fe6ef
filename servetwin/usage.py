"""Commands and options that there are not, told as any other wrong input."""

import re
from collections.abc import Iterable
from typing import Any

from simcore.errors import UnknownNameError

_NO_SUCH_COMMAND = re.compile(r"No such command (['\"])(.*?)\1(\.|,| |$).*", re.DOTALL)


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
    unknown = _unknown_name(error, said, context)
    sentence = str(unknown) if unknown else " ".join(said.split())
    hint = f"\nTry '{context.command_path} --help'." if context is not None else ""
    return f"servetwin: {sentence}{hint}"


def _unknown_name(error: Exception, said: str, context: Any) -> UnknownNameError | None:
    if context is None:
        return None
    command = _NO_SUCH_COMMAND.fullmatch(said)
    if command is not None:
        return UnknownNameError("the command", command[2], context.command.commands)
    option = getattr(error, "option_name", None)
    if option is not None and said.startswith("No such option"):
        return UnknownNameError("the option", option, _options(context))
    return None


def _options(context: Any) -> Iterable[str]:
    names = (name for parameter in context.command.get_params(context) for name in parameter.opts)
    return [name for name in names if name.startswith("--")]
