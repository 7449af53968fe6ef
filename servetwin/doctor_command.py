"""``servetwin doctor``: versions, what optional parts are usable and why not, and clashes of package names."""

import json
import platform
import re
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from importlib.util import find_spec
from pathlib import Path

import typer

from servetwin.options import AsJson

OWN_PACKAGES = (
    "servetwin",
    "papers",
    "dashboard",
    "fidelity",
    "experiments",
    "calibrate",
    "live",
    "kernels",
    "simcore",
    "policies",
    "hardware_profiles",
)
OPTIONAL_PARTS = {
    "kernels": ("torch", "triton"),
    "dashboard": ("streamlit",),
    "live": ("torch", "triton", "safetensors", "gguf", "tokenizers", "jinja2"),
    "ray": (),
}
"""Extras by the package that they are for, servetwin's or their own, and the modules that they bring."""


def doctor(as_json: AsJson = False) -> None:
    """Report versions, usable parts and clashing packages.

    The exit code is 1 if a base package is missing, or if another distribution's package hides one of servetwin's.
    """
    clashes = find_clashes()
    packages = {name: _version(name) for name in _base_requirements()}
    missing = [name for name, found in packages.items() if found is None]
    extras = {
        extra: [module for module in (extra, *modules) if find_spec(module) is None]
        for extra, modules in OPTIONAL_PARTS.items()
    }
    if as_json:
        facts = {
            "servetwin": _version("servetwin"),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "packages": packages,
            "extras": {extra: {"usable": not lacking, "missing": lacking} for extra, lacking in extras.items()},
            "clashes": clashes,
        }
        typer.echo(json.dumps(facts, indent=2))
    else:
        typer.echo(f"servetwin {_version('servetwin')}, Python {platform.python_version()}, {platform.platform()}")
        for name, found in packages.items():
            typer.echo(f"  {name} {found or 'is missing; pip install servetwin'}")
        for extra, lacking in extras.items():
            why = f"not usable: no {', '.join(lacking)}; pip install 'servetwin[{extra}]'" if lacking else "usable"
            typer.echo(f"extra {extra}: {why}")
        for clash in clashes:
            typer.echo(f"clash: {clash}; install servetwin into an environment of its own")
        if not clashes:
            typer.echo("no clash of package names")
    if clashes or missing:
        raise typer.Exit(1)


def find_clashes() -> list[str]:
    """One sentence per top-level package of servetwin that another distribution provides too, or hides."""
    clashes = []
    home = Path(__file__).resolve().parent.parent
    providers = packages_distributions()
    for package in OWN_PACKAGES:
        others = sorted({name for name in providers.get(package, ()) if name.lower() != "servetwin"})
        if others:
            clashes.append(f"the package {package!r} is also installed by {', '.join(others)}")
        spec = find_spec(package)
        found = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
        if found != home / package:
            clashes.append(f"import {package} finds {found}, not servetwin's {home / package}")
    return clashes


def _base_requirements() -> list[str]:
    try:
        stated = requires("servetwin") or []
    except PackageNotFoundError:
        return []
    return [re.split(r"[^\w.-]", line)[0] for line in stated if "extra ==" not in line]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
