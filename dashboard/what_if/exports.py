"""A setup to take away: as YAML, as a command line, as a Python script."""

from collections.abc import Mapping
from pprint import pformat
from typing import Any

import yaml

_END = "END_OF_SCENARIO"
_WIDTH = 110


def as_yaml(document: Mapping[str, Any]) -> str:
    """The scenario as a file for ``servetwin run``."""
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True)


def as_command(document: Mapping[str, Any], name: str) -> str:
    """Shell commands that write the scenario and run it; nothing in it is expanded by the shell."""
    return f"cat > {name}.yaml <<'{_END}'\n{as_yaml(document)}{_END}\nservetwin run {name}.yaml\n"


def as_python(document: Mapping[str, Any], name: str) -> str:
    """A script that simulates the scenario and leaves a run folder."""
    written = pformat(dict(document), width=_WIDTH, sort_dicts=False)
    return (
        f"import servetwin\n\nscenario = {written}\n"
        f'result = servetwin.simulate(scenario)\nprint(result.summary["metrics"]["ttft_s"]["p99"])\n'
        f'servetwin.save(result, "runs/{name}")\n'
    )
