"""Write the figures that documents show: ``python tools/regenerate.py [--check]``.

Between a document's markers stands the output of a run. With ``--check`` nothing is written, and the exit code is 1 if
a document differs from what would be.
"""

import inspect
import io
import re
import sys
from itertools import takewhile
from pathlib import Path

import yaml
from rich.console import Console

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, not another that may be installed


from policies.registry import KINDS, policy_class, policy_names
from servetwin.api import simulate
from servetwin.run_table import print_run
from simcore.engines import FOLDER, engine_names
from simcore.hardware import accelerator_names
from simcore.scenario.policy_choice import complete_policy
from tools import metric_tables, parallelism_page, scenario_page

ROOT = Path(__file__).resolve().parent.parent
START, END = "<!-- quickstart: made by tools/regenerate.py -->", "<!-- end of quickstart -->"


def quickstart() -> str:
    """What ``make run`` prints, without the line on how long it took."""
    result = simulate(ROOT / "scenarios" / "quickstart.yaml")
    stream = io.StringIO()
    print_run(result, Console(file=stream, width=100, highlight=False))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    return "\n".join(line for line in lines if not line.startswith(("simulated ", "Warning:")))


def with_block(document: str, block: str) -> str:
    """The document with the text between the markers replaced."""
    head, _, rest = document.partition(START)
    _, _, tail = rest.partition(END)
    return f"{head}{START}\n```\n{block}\n```\n{END}{tail}"


def with_counts(document: str) -> str:
    """The document with as many accelerators as there are."""
    return re.sub(r"on \d+ accelerators", f"on {len(accelerator_names())} accelerators", document)


def policies() -> str:
    """Every policy with what it does and its parameters, from the classes themselves."""
    lines = [
        "# Policies",
        "",
        "Made by `tools/regenerate.py` from the classes in `policies/`. A scenario names a policy and may set its",
        "parameters: `ordering: {name: vtc, output_weight: 2.0}`, or just `ordering: fcfs`.",
    ]
    for kind in KINDS:
        lines += ["", f"## {kind}"]
        for name in policy_names(kind):
            lines += [
                "",
                f"### {name}",
                "",
                inspect.cleandoc(policy_class(kind, name).__doc__ or "").replace("``", "`"),
            ]
            given = complete_policy(kind, {"name": name}, kind)
            parameters = [f"`{key}: {yaml_text(value)}`" for key, value in given.items() if key != "name"]
            lines += ["", f"Parameters and defaults: {', '.join(parameters) or 'none'}."]
    return "\n".join(lines) + "\n"


def engines() -> str:
    """Every engine preset with its settings, and with what its file says of their sources."""
    files_of = {name: FOLDER / f"{name}.yaml" for name in engine_names()}
    texts = {name: file.read_text(encoding="utf-8") for name, file in files_of.items()}
    presets = {name: yaml.safe_load(text) for name, text in texts.items()}
    lines = [
        "# Engine presets",
        "",
        "Made by `tools/regenerate.py` from `simcore/engines/`. A scenario names a preset by `engine` and may state",
        "its settings of `scheduler`, `memory` and `host` otherwise.",
        "",
        "Settings under `kernels` are facts of the engine, which no scenario states: whose kernel profiles price it",
        "([scenario.md](scenario.md#pricing)), how experts are padded, and how many kernels are launched. With",
        "`limits_per_data_parallel_rank` the limits of a step are those of each data-parallel rank.",
        "",
        f"| setting | {' | '.join(f'`{name}`' for name in presets)} |",
        f"|---|{'---|' * len(presets)}",
    ]
    limits = "limits_per_data_parallel_rank"
    lines.append(f"| `{limits}` | {' | '.join(yaml_text(preset[limits]) for preset in presets.values())} |")
    for section in ("scheduler", "memory", "host", "kernels"):
        for key in dict.fromkeys(key for preset in presets.values() for key in preset[section]):
            cells = [yaml_text(preset[section][key]) if key in preset[section] else "" for preset in presets.values()]
            lines.append(f"| `{section}.{key}` | {' | '.join(cells)} |")
    for name, text in texts.items():
        comment = [
            line.removeprefix("#").removeprefix(" ").rstrip()
            for line in takewhile(lambda line: line[:1] == "#", text.splitlines())
        ]
        lines += ["", f"## {name}", "", *comment]
    return "\n".join(lines) + "\n"


def yaml_text(value: object) -> str:
    """A value as a scenario would state it, on one line."""
    return yaml.safe_dump(plain(value), default_flow_style=True, width=1000).removesuffix("...\n").strip()


def plain(value: object) -> object:
    """The value with tuples as lists."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def main(check: bool) -> int:
    """Regenerate, or compare; returns the exit code."""
    readme, outputs = ROOT / "README.md", ROOT / "docs" / "reference" / "outputs.md"
    documents = {
        outputs: metric_tables.with_tables(outputs.read_text(encoding="utf-8")),
        readme: with_counts(with_block(readme.read_text(encoding="utf-8"), quickstart())),
        ROOT / "docs" / "reference" / "policies.md": policies(),
        ROOT / "docs" / "reference" / "parallelism.md": parallelism_page.page(),
        ROOT / "docs" / "reference" / "engines.md": engines(),
        ROOT / "docs" / "reference" / "scenario.md": scenario_page.page(),
    }
    if check:
        return int(any(not path.exists() or path.read_text(encoding="utf-8") != new for path, new in documents.items()))
    for path, new in documents.items():
        path.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
