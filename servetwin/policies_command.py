"""``servetwin policies``: the policies known by name."""

import inspect
import json
from typing import Annotated

import typer

from policies.registry import KINDS, BrokenPolicyError, policy_class, policy_names
from servetwin.console import console, plain_table, print_table
from servetwin.options import AsJson
from simcore.core.errors import UnknownNameError

_SOURCE = "Source:"


def policies(
    kind: Annotated[str | None, typer.Argument(help="One kind, such as ordering.")] = None,
    as_json: AsJson = False,
) -> None:
    """List policies by kind, with their sources."""
    if kind is not None and kind not in KINDS:
        raise UnknownNameError("KIND", kind, KINDS)
    rows = [
        {"kind": each, "name": name, **_description(each, name)}
        for each in ([kind] if kind is not None else KINDS)
        for name in policy_names(each)
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = plain_table("kind", "name", "what it does", "source", justify="left")
    for row in rows:
        table.add_row(*row.values())
    print_table(table, console())


def _description(kind: str, name: str) -> dict[str, str]:
    try:
        return _described(policy_class(kind, name))
    except BrokenPolicyError as error:
        return {"summary": f"broken: {error}", "source": "not stated"}


def _described(policy: type[object]) -> dict[str, str]:
    """The first paragraph of the class's docstring, and the one that begins with "Source:", each on one line."""
    paragraphs = [" ".join(text.replace("``", "").split()) for text in (inspect.getdoc(policy) or "").split("\n\n")]
    sources = [text.removeprefix(_SOURCE).strip() for text in paragraphs if text.startswith(_SOURCE)]
    return {"summary": paragraphs[0], "source": sources[-1] if sources else "not stated"}
