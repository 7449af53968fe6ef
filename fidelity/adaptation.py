"""A host's constants from measured runs of its own: ``servetwin fidelity --adapt``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from fidelity.case import Case, Outcome, Refusal
from fidelity.engine_runs import read_engine_runs
from fidelity.execution import Progress, simulate_cases
from fidelity.harness import case_of
from fidelity.host_fit import TPOT, TTFT, Fitted, constants_of, fit, fittable, predicted
from fidelity.left_out_tables import constants_table
from fidelity.posts import read_posts
from fidelity.table import Cell, Share, Table
from simcore.core.errors import InputError, ServetwinError
from simcore.cost.assumptions import HOST_RANGES

HEADING = "# Host constants, fitted by servetwin fidelity --adapt"
"""What a file of them begins with."""
ADAPTED = ("step_s", "per_request_s", "launch_s", "request_s", "per_prompt_token_s")
"""The constants of a host that runs can tell apart, five at most."""


_HELD = 0.05
"""So weakly constants are held to what they were, for those that runs say nothing of."""


@dataclass(frozen=True, slots=True)
class Adaptation:
    """Constants that runs are nearest to, and the runs before and after."""

    fitted: Fitted
    runs: tuple[Outcome, ...]
    after: tuple[Outcome, ...]

    @property
    def host(self) -> dict[str, float]:
        """The section ``host`` of a scenario."""
        return {name: float(f"{value:.3g}") for (name, _), value in sorted(self.fitted.values.items())}

    def document(self) -> str:
        """The file that a scenario takes, with intervals and ranges as comments."""
        lines = [f"{HEADING} to {len(self.runs)} measured runs, within what each constant can physically be."]
        for (name, value), best in sorted(self.fitted.values.items()):
            low, high, _ = HOST_RANGES[name]
            half = self.fitted.half_widths[name, value]
            interval = f"{max(best - half, low):.2g} to {min(best + half, high):.2g}"
            lines.append(f"# {name}: {interval} s with 80%; {value:g} s before; {low:g} to {high:g} s are possible.")
        return "\n".join([*lines, yaml.safe_dump({"host": self.host}, sort_keys=True)])

    def tables(self) -> list[Table]:
        """The constants, and what they change."""
        rows: list[tuple[Cell, ...]] = []
        for key, name in ((TTFT, "TTFT"), (TPOT, "TPOT")):
            sides = [np.array([one.error(key) for one in runs]) for runs in (self.runs, self.after)]
            medians = (Share(float(np.median(np.abs(errors)))) for errors in sides)
            biases = (Share(float(np.median(errors)), signed=True) for errors in sides)
            rows.append((name, len(self.runs), *medians, *biases))
        columns = ("figure", "runs", "median error before", "after", "bias before", "after")
        return [
            constants_table(self.fitted, self.runs, "Host constants adapted to these runs"),
            Table("What they change", columns, tuple(rows)),
        ]


def adapt(paths: Sequence[Path], jobs: int | None = None, progress: Progress | None = None) -> Adaptation:
    """Fit the host to runs: files of engine runs, and folders of posted results; one engine's default at a time.

    Raises ``InputError`` where the runs are of hosts that differ already, or none tells enough.
    """
    cases = [case for path in paths for case in _cases(path)]
    found = [one for one in simulate_cases(cases, jobs, progress) if isinstance(one, Outcome)] if cases else []
    runs = fittable(found)
    if not runs:
        raise InputError(
            "--adapt", ", ".join(map(str, paths)), "runs that state mean TTFT and mean TPOT and can be simulated"
        )
    constants = constants_of(runs, ADAPTED)
    names = [name for name, _ in constants]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError("--adapt", f"runs whose {twice} differs already", "runs of one engine and version")
    if 2 * len(runs) < len(constants):
        constants = [constant for constant in constants if constant[0] in ("request_s", "step_s")]
    fitted = fit(runs, constants, _HELD)
    return Adaptation(fitted, tuple(runs), tuple(predicted(one, fitted) for one in runs))


def _cases(path: Path) -> list[Case]:
    found: list[Case | Refusal]
    found = read_posts(path) if path.is_dir() else [case_of(run) for run in read_engine_runs(path)]
    refusals = [one for one in found if isinstance(one, Refusal)]
    if len(refusals) == len(found):
        raise ServetwinError(f"{path}: none of its runs can be simulated ({refusals[0].reason}).")
    return [one for one in found if isinstance(one, Case)]
