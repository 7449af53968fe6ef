"""Files that a visitor hands in: scenarios and traces, bounded and read as strictly as any; nothing in them is run."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from simcore.core.errors import FileError, InputError, Phrase
from simcore.core.yaml_text import parse_yaml, yaml_problem
from simcore.workload.traces import read_trace

LARGEST_SCENARIO_BYTES = 1 << 18
LARGEST_TRACE_BYTES = 50 << 20
TRACE_SUFFIXES = (".csv", ".jsonl", ".parquet")


def scenario_in(name: str, content: bytes) -> dict[str, Any]:
    """The scenario in a YAML file, not yet checked; raises ``FileError`` or ``InputError`` for anything else."""
    if len(content) > LARGEST_SCENARIO_BYTES:
        raise FileError(name, f"is larger than {LARGEST_SCENARIO_BYTES >> 10} KiB, expected a scenario")
    try:
        document = parse_yaml(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise FileError(name, "is not UTF-8 text, expected a YAML file") from None
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        raise FileError(name, f"not valid YAML: {yaml_problem(error)}", mark.line + 1 if mark else None) from None
    if not isinstance(document, dict):
        raise FileError(name, "holds no mapping, expected one of model, cluster, workload and so on")
    return document


def keep_trace(name: str, content: bytes, folder: Path) -> str:
    """Check a trace, keep it in a folder, and return what scenarios call it.

    The name begins with a hash of the content, so that no trace takes the place of another. Raises ``FileError`` or
    ``InputError`` for a file that is too large or no trace.
    """
    suffix = Path(name).suffix.lower()
    if suffix not in TRACE_SUFFIXES:
        raise InputError("the trace", Phrase(f"a file {name!r}"), f"one that ends in {', '.join(TRACE_SUFFIXES)}")
    if len(content) > LARGEST_TRACE_BYTES:
        raise FileError(name, f"is larger than {LARGEST_TRACE_BYTES >> 20} MiB, expected a trace")
    kept = folder / f"{sha256(content).hexdigest()[:12]}{suffix}"
    if kept.exists():
        return kept.name
    kept.write_bytes(content)
    try:
        read_trace(kept)
    except FileError as error:
        kept.unlink()
        raise FileError(name, error.problem, error.line) from None
    except Exception:
        kept.unlink()
        raise
    return kept.name


def known_traces(folder: Path) -> Mapping[str, Path]:
    """The traces that scenarios may name: the bundled one where there is a checkout, and those handed in."""
    bundled = Path(__file__).parents[2] / "scenarios" / "bundled-workload.csv"
    kept = sorted(path for path in folder.iterdir() if path.suffix in TRACE_SUFFIXES)
    return {path.name: path for path in ([bundled] if bundled.is_file() else []) + kept}
