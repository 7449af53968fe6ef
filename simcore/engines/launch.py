"""How an engine is started on the command line with the settings of a scenario."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import ConfigDict


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The options of an engine's server, by the dotted path of the scenario's value that they state.

    ``command`` starts it, ``{model}`` being the model. ``switches`` are options without a value, given where a count is
    above 1 or a setting is true; ``negated`` ones where it is false. ``words`` has values that the engine calls
    otherwise. What stands in ``elsewhere`` has no option; the text says where the engine takes it from.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    command: str
    options: dict[str, str] = field(default_factory=dict)
    switches: dict[str, str] = field(default_factory=dict)
    negated: dict[str, str] = field(default_factory=dict)
    words: dict[str, dict[str, str]] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)

    def line(self, model: str, scenario: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        """The command for a scenario in full, and sentences on what it cannot state.

        Counts of 1 and formats that the checkpoint decides (``auto``) are left out, as every engine starts from them.
        """
        parts = [self.command.format(model=shlex.quote(model))]
        for path, option in self.options.items():
            value = _at(scenario, path)
            if _stands_out(value):
                parts.append(f"{option} {self.words.get(path, {}).get(str(value), value)}")
        parts += [option for path, option in self.switches.items() if _stands_out(_at(scenario, path))]
        parts += [option for path, option in self.negated.items() if _at(scenario, path) is False]
        notes = [
            f"{path} is {value}: {where}."
            for path, where in self.elsewhere.items()
            if _stands_out(value := _at(scenario, path))
        ]
        return " ".join(parts), tuple(notes)


def _at(scenario: Mapping[str, Any], path: str) -> Any:
    value: Any = scenario
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _stands_out(value: Any) -> bool:
    return value not in (None, "auto", 1, False)
