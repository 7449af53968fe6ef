"""Compile the hot modules of the simulator with mypyc: ``python -m tools.compiled [--out build/compiled]``.

The folder gets a copy of all packages, in which the modules of ``hot_modules.txt`` are extension modules beside their
sources. Put before everything else, it is what runs::

    PYTHONPATH=build/compiled python -m servetwin run scenarios/quickstart.yaml

Nothing else needs it: the same sources run uncompiled, with equal results to the bit. It takes a C compiler, and a
minute or more. Interpreted code cannot derive from a compiled class unless that says so, which it does in the copy
wherever a class outside of the list derives from it.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOT_MODULES = tuple(Path(__file__).with_name("hot_modules.txt").read_text(encoding="utf-8").split())
_OPEN = "@mypyc_attr(allow_interpreted_subclasses=True)\n"
_SETUP = """
from mypyc.build import mypycify
from setuptools import setup

modules = mypycify({modules!r}, opt_level="2", debug_level="0", multi_file=True)
setup(name="hot-modules", packages=[], ext_modules=modules)
"""


def build(out: Path, modules: Sequence[str] = HOT_MODULES) -> None:
    """Copy the packages to ``out``, which is made anew, and compile modules there.

    Raises ``RuntimeError`` with what the compiler says if it fails.
    """
    if out.exists():
        shutil.rmtree(out)
    for package in _packages():
        shutil.copytree(ROOT / package, out / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", out)
    bases = set(_derived_from(out, modules))
    for module in modules:
        if (out / module).is_file():
            open_classes(out / module, bases)
    (out / "setup.py").write_text(_SETUP.format(modules=list(modules)), encoding="utf-8")
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"mypyc failed:\n{done.stdout}\n{done.stderr}")
    (out / "setup.py").unlink()
    (out / "pyproject.toml").unlink()
    shutil.rmtree(out / "build")


def _packages() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [pattern.rstrip("*") for pattern in settings["tool"]["setuptools"]["packages"]["find"]["include"]]


def _derived_from(out: Path, modules: Sequence[str]) -> Iterator[str]:
    """The names of classes that a class outside of ``modules`` derives from."""
    for file in out.rglob("*.py"):
        if str(file.relative_to(out)) not in modules:
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    yield from (base.id for base in node.bases if isinstance(base, ast.Name))


def open_classes(file: Path, bases: set[str]) -> None:
    """Let interpreted classes derive from these classes of a module, as far as it has them."""
    source = file.read_text(encoding="utf-8")
    names = [node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    opened = [name for name in names if name in bases]
    for name in opened:
        source = re.sub(rf"^((?:@.*\n)*class {name}\b)", rf"{_OPEN}\1", source, count=1, flags=re.MULTILINE)
    if opened:
        first = next(node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom))
        lines = source.splitlines(keepends=True)
        lines.insert(first.lineno - 1, "from mypy_extensions import mypyc_attr\n")
        file.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    """Build where the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "compiled")
    out = parser.parse_args().out.resolve()
    build(out)
    print(f"{len(HOT_MODULES)} modules compiled; to run them: PYTHONPATH={out} python -m servetwin run SCENARIO")


if __name__ == "__main__":
    main()
