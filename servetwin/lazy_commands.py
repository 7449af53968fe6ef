"""Groups of commands of which each is imported only when it is run, so that the command line starts at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup
from typer.main import get_command


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is, ``module:function`` or ``module:app``, and its line in the list of commands."""

    target: str
    line: str

    def load(self, name: str) -> Any:
        """The command, its module imported."""
        module, _, attribute = self.target.partition(":")
        target = getattr(import_module(module), attribute)
        if isinstance(target, typer.Typer):
            command = get_command(target)
            command.name = name
            return command
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(target)
        return get_command(alone)


class LazyGroup(TyperGroup):
    """A group that knows the names of its commands and, unless one is run, no more."""

    known: ClassVar[Mapping[str, LazyCommand]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the table."""
        return list(self.known)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, imported now; None if there is none."""
        command = self.known.get(cmd_name)
        return None if command is None else command.load(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with the lines of the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.line) for name, command in self.known.items()])


def lazy_app(name: str, help: str, commands: Mapping[str, LazyCommand], runs_alone: bool = False) -> typer.Typer:
    """A command line, or a part of it, that imports the modules of its commands when they are run."""
    group = type("LazyGroupOf", (LazyGroup,), {"known": commands})
    return typer.Typer(
        name=name,
        help=help,
        cls=group,
        no_args_is_help=not runs_alone,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        add_completion=False,
    )
